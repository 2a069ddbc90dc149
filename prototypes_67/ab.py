from common import *
import time
import skellipsoid._ellipsoid.math.boundaries as B, skellipsoid._ellipsoid.math.table_maker as TM, skellipsoid._ellipsoid.math.closed_form as CF
from skellipsoid import EllipsoidOpenSetClassifier
def run(m,X,y,T):
    B.N_NEAREST=TM.N_NEAREST=CF.N_NEAREST=m
    t0=time.process_time()
    clf=EllipsoidOpenSetClassifier(open_label=OPEN,random_state=0).fit(X,y)
    return clf,time.process_time()-t0
MS=(1,2,3) if sys.argv[1]=="real" else (1,3)
which=sys.argv[1]; lays=eval(sys.argv[2]) if len(sys.argv)>2 else (((),0),((0,4),.5))
for name,tr,te in (real() if which=="real" else home(ratios=(.25,.5,.75))):
  for lay,w in lays:
    X,T=feats(tr.L,te.L,lay,w); o=[]
    for m in MS:
        clf,t=run(m,X,tr.y,T)
        j=judge(te.y,clf.predict_known(T),clf.score_samples(T),clf.offset_)
        k=te.y!=OPEN
        rej=100*(clf.predict(T)[k]==OPEN).mean(); frej=100*np.average(np.asarray(clf.held_out_.score)[~clf.held_out_.is_open]<clf.offset_)
        hacc=100*(clf.held_out_.label==clf.held_out_.nearest_class)[~clf.held_out_.is_open].mean()
        o.append(f"m{m} "+" ".join(f"{j[x]:.1f}" for x in ("acc","auroc","fit","best"))+f" p<.1 {100*(clf.known_p_value(T)[k]<=.1).mean():.1f} hacc {hacc:.1f} t {t:.1f} b{clf.between_share_ or 0:.2f} r{clf.shared_share_:.2f}")
    print(name,lay,len(clf.classes_),len(X),"|"," | ".join(o),flush=True)
