from common import *
import time
from skellipsoid import EllipsoidOpenSetClassifier
def nl(L,l,ref,centre=True): return normalize(L[l]-(ref[l].mean(0) if centre else 0))
R=np.random.default_rng(0)
def proj(k,d): 
    return np.linalg.qr(np.random.default_rng(1).normal(size=(d,k)))[0]*np.sqrt(d/k)
def build(kind,tr,te):
    out=[]
    for L in (tr,te):
        s=sentence(L)
        if kind=="s": X=s
        elif kind.startswith("cat"):      # cat:0,4:.5
            _,ls,w=kind.split(":"); X=np.hstack([s]+[float(w)*nl(L,int(l),tr) for l in ls.split(",")])
        elif kind.startswith("sum"):
            _,ls,w=kind.split(":"); X=np.hstack([s,float(w)*sum(nl(L,int(l),tr) for l in ls.split(","))])
        elif kind.startswith("add:"):
            _,ls,w=kind.split(":"); X=s+float(w)*sum(nl(L,int(l),tr) for l in ls.split(","))
        elif kind.startswith("adn"):   # unit length again; adn centred, adu: not
            _,ls,w=kind.split(":"); X=normalize(s+float(w)*sum(nl(L,int(l),tr) for l in ls.split(",")))
        elif kind.startswith("unc"):
            _,ls,w=kind.split(":"); X=normalize(s+float(w)*sum(nl(L,int(l),tr,False) for l in ls.split(",")))
        elif kind.startswith("rp"):   # rp:0,4:.5:128
            _,ls,w,k=kind.split(":"); Z=np.hstack([float(w)*nl(L,int(l),tr) for l in ls.split(",")]); X=np.hstack([s,Z@proj(int(k),Z.shape[1])])
        elif kind.startswith("ctl"):  # control: random 768 of sentence
            _,w=kind.split(":"); P=np.random.default_rng(2).normal(size=(384,768))/384**.5
            Z=(s-sentence(tr).mean(0))@P; X=np.hstack([s]+[float(w)*normalize(z) for z in np.hsplit(Z,2)])
        out.append(X.astype(np.float32))
    return out
def cases(which):
    return list(real()) if which=="real" else list(home(ratios=(.25,.5,.75)))
if __name__=="__main__":
    which=sys.argv[1]; kinds=sys.argv[2].split(";"); dest=open(f"/tmp/lay/var_{which}.jsonl","a")
    sel=sys.argv[3] if len(sys.argv)>3 else ""
    tot={}
    for name,tr,te in cases(which):
        if sel and sel not in name: continue
        for kind in kinds:
            X,T=build(kind,tr.L,te.L)
            t0=time.process_time(); clf=EllipsoidOpenSetClassifier(open_label=OPEN,random_state=0).fit(X,tr.y); t=time.process_time()-t0
            j=judge(te.y,clf.predict_known(T),clf.score_samples(T),clf.offset_); k=te.y!=OPEN
            row=dict(case=name,kind=kind,t=t,p=100*(clf.known_p_value(T)[k]<=.1).mean(),b=clf.between_share_,r=clf.shared_share_,a=clf.spherical_share_,**j)
            dest.write(json.dumps(row)+"\n"); dest.flush()
            tot.setdefault(kind,[]).append([row[x] for x in ("acc","auroc","fit","best","t")])
    for k,v in tot.items(): print(f"{k:16s}",np.mean(v,0).round(2), [round(x[3],1) for x in v],flush=True)
