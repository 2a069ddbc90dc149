from common import *
import torch
from skellipsoid import EllipsoidOpenSetClassifier
from sklearn.datasets import load_digits,load_iris,load_wine,load_breast_cancer
from sklearn.preprocessing import scale
def tabs():
    for n,l in (("digits",load_digits),("wine",load_wine),("iris",load_iris),("cancer",load_breast_cancer)):
        X,y=l(return_X_y=True); X=X if n=="digits" else scale(X)
        for s in range(4):
            r=np.random.default_rng(s); tr=r.random(len(y))<.5
            yield f"{n}",X[tr],y[tr].astype(str),X[~tr],y[~tr].astype(str)
    for d,k,dist in ((3,5,1.0),(8,6,1.),(20,10,.7),(50,30,.5)):
        for s in range(3):
            r=np.random.default_rng(s); m=r.normal(size=(k,d))*dist
            y=np.repeat(np.arange(k),120); X=m[y]+r.normal(size=(len(y),d)); tr=np.tile([True]*60+[False]*60,k)
            yield f"gauss{d}x{k}",X[tr],y[tr].astype(str),X[~tr],y[~tr].astype(str)
    for i,(name,tr,te) in enumerate(list(real())[:5]+list(home(ratios=(.5,)))):
        X,T=feats(tr.L,te.L,(),0); k=te.y!=OPEN
        yield name,X,tr.y,T[k],te.y[k]
import collections
out=collections.defaultdict(list)
for name,X,y,T,t in tabs():
    clf=EllipsoidOpenSetClassifier(random_state=0).fit(X,y)
    b=clf._boundaries; r=b.prepared(torch.device("cpu"),torch.float64)
    C=r.scorer.metric.coordinates(r.standardize(torch.from_numpy(np.asarray(T,float))))
    near,M=r.scorer.all(r.standardize(torch.from_numpy(np.asarray(T,float))))
    nm=r.scorer.metric.nearest(C,1)[:,0].numpy(); near=near.numpy(); M=M.numpy()
    g=np.take_along_axis(M,near,1); a=near[np.arange(len(M)),g.argmax(1)]
    # natural units: boundary scale
    ch=b.chosen
    # scale at typical: scale_of_large*typical_growth ; d/growth=(1-M)*scale
    ms=clf._boundaries.moments
    B0=ms.variances_of_means; bb=ch.shrinkage.between
    if bb is None: acc3=(clf.classes_[a]==t).mean()
    else:
        gamma=B0.mean(); binv=1/((1-bb)*B0+bb*gamma)
        # means in T units: directions = means/stretches(padded)
        st=ms.stretches; n=len(st); means=b.shapes.metric.directions[:,:n]*st
        const=(means**2*binv).sum(1)
        held=np.asarray(clf.held_out_.score); 
        sc=ch.scale_of_large*np.exp(0)  # growth included approx
        d2=((1-M)*sc)**2
        v=d2-const; gv=np.take_along_axis(v,near,1); c=near[np.arange(len(M)),gv.argmin(1)]
        acc3=(clf.classes_[c]==t).mean()
    out[name].append([100*(clf.classes_[nm]==t).mean(),100*(clf.classes_[a]==t).mean(),100*acc3])
for k,v in out.items(): print(k,np.mean(v,0).round(1))
