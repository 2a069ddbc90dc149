from common import *
from skellipsoid import EllipsoidOpenSetClassifier
import itertools
which=sys.argv[1]
for name,tr,te in (real() if which=="real" else home()):
  for lay,w in (((),0),((0,4),.5)):
    X,T=feats(tr.L,te.L,lay,w)
    clf=EllipsoidOpenSetClassifier(open_label=OPEN,random_state=0).fit(X,tr.y)
    off=clf.offset_
    lab,s=clf.predict_known(T),clf.score_samples(T)
    M=clf.class_margins(T)
    out={"near":judge(te.y,lab,s,off)}
    # T-distance order
    b=clf._boundaries; r=b.prepared(__import__("torch").device("cpu"),__import__("torch").float64)
    import torch
    C=r.scorer.metric.coordinates(r.standardize(torch.from_numpy(T.astype(float))))
    near=(torch.addmm(r.scorer.metric.constants,C,r.scorer.metric.directions.T)).numpy()
    q=-((C.square().sum(1,keepdim=True)-2*C@r.scorer.centres.T+r.scorer.centres.square().sum(1))).numpy()
    order=np.argsort(-near,1)
    for m in (2,3,5,len(clf.classes_)):
        mask=np.full(M.shape,-np.inf); np.put_along_axis(mask,order[:,:m],np.take_along_axis(M,order[:,:m],1),1)
        a=mask.argmax(1); out[f"top{m if m<9 else 'all'}"]=judge(te.y,clf.classes_[a],mask.max(1),off)
    a=q.argmax(1); out["Q"]=judge(te.y,clf.classes_[a],M[np.arange(len(M)),a],off)
    lm=near-(near.max(1,keepdims=True))
    print(name,lay,len(clf.classes_),len(X),"|"," | ".join(f"{k} "+" ".join(f"{v[x]:.1f}" for x in ("acc","auroc","fit","best")) for k,v in out.items()),flush=True)
