from common import *
import time
import skellipsoid._ellipsoid.math.boundaries as B, skellipsoid._ellipsoid.math.table_maker as TM, skellipsoid._ellipsoid.math.closed_form as CF
from skellipsoid import EllipsoidOpenSetClassifier
orig=CF._choose_shares
def one(maker,known): return orig(maker,[k._replace(assigned=k.assigned[:,:1]) for k in known])
which=sys.argv[1]; lays=eval(sys.argv[2]) if len(sys.argv)>2 else (((),0),((0,4),.5))
acc={}
for name,tr,te in (real() if which=="real" else home(ratios=(.25,.5,.75))):
  for lay,w in lays:
    X,T=feats(tr.L,te.L,lay,w); o=[]
    for v in ("c1f1","c1f3","c3f3"):
        CF._choose_shares=one if v[1]=="1" else orig
        m=int(v[3]); B.N_NEAREST=TM.N_NEAREST=CF.N_NEAREST=m
        t0=time.process_time(); clf=EllipsoidOpenSetClassifier(open_label=OPEN,random_state=0).fit(X,tr.y); t=time.process_time()-t0
        j=judge(te.y,clf.predict_known(T),clf.score_samples(T),clf.offset_)
        acc.setdefault((lay,v),[]).append([j[x] for x in ("acc","auroc","fit","best")]+[t])
        o.append(v+" "+" ".join(f"{j[x]:.1f}" for x in ("acc","auroc","fit","best"))+f" t {t:.1f} b{clf.between_share_ or 0:.2f} r{clf.shared_share_:.2f}")
    print(name,lay,len(clf.classes_),len(X),"|"," | ".join(o),flush=True)
for k,v in acc.items(): print(k,np.mean(v,0).round(2))
