/* The guide before the API, and both before the published methods that the benchmark compares with. Exact names of
 * functions and entries of the index still come first. The numbers below `score` are Sphinx's own. */
var Scorer = {
  score: (result) => {
    const [page, , , , score, , kind] = result;
    if (kind === "index" || kind === "object") return score;
    if (page.includes("skellipsoid_bench")) return score - 8;
    return page.startsWith("guide/") || page === "install" ? score + 8 : score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
