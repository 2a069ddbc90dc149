from common import *
from skellipsoid import EllipsoidOpenSetClassifier
import torch
for name,tr,te in list(real())[:4]+list(home(ratios=(.5,))):
    X,T=feats(tr.L,te.L,(),0)
    clf=EllipsoidOpenSetClassifier(open_label=OPEN,random_state=0).fit(X,tr.y)
    r=clf._boundaries.prepared(torch.device("cpu"),torch.float64)
    with torch.inference_mode():
        Z=r.standardize(torch.from_numpy(T.astype(float)))
        C=r.scorer.metric.coordinates(Z); lab,M,near=r.scorer.all(Z)
        cl=torch.addmm(r.scorer.metric.constants,C,r.scorer.metric.directions.T)
    g=cl.gather(1,near)           # -d²/2 + const
    gap=(g[:,:1]-g).numpy()       # half squared distance difference, T units
    m=M.gather(1,near).numpy()
    win=m.argmax(1)
    d1=None
    w=gap[np.arange(len(gap)),win][win>0]
    print(name,"reassigned",(win>0).mean().round(3),"gap quantiles of winners",np.quantile(w,[.5,.9,.95,.99,1]).round(1) if len(w) else None,"share of 2nd/3rd with gap below", [(q,round(float((gap[:,1:]<q).mean()),3)) for q in np.quantile(w,[.9,.95,.99])], "all",np.quantile(gap[:,1:],[.1,.5,.9]).round(1),flush=True)
