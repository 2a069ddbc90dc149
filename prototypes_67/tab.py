import json,sys,collections,numpy as np
d=collections.defaultdict(dict)
for l in open(sys.argv[1]):
    r=json.loads(l); d[r["case"]][r["kind"]]=r
kinds=list(dict.fromkeys(k for c in d.values() for k in c))
full=[c for c in d if len(d[c])==len(kinds)]
print(len(full),full)
for k in kinds: print(f"{k:16s}",*(f"{x} {np.mean([d[c][k][x] for c in full]):.2f}" for x in ("acc","auroc","fit","best","t","p")), "best-s:",[round(d[c][k]["best"]-d[c]["s"]["best"],1) for c in full])
