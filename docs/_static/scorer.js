/* How results of a search are ordered: the guide before the API, and both before the published methods that the
 * benchmark compares with. A query of several words also finds the index entries that it contains: "use a GPU" finds
 * the entry "GPU". The numbers below `score` are Sphinx's own. */
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

function entriesWithin(query) {
  const { docnames, filenames, titles, indexentries } = Search._index;
  const words = ` ${query.toLowerCase().trim()} `;
  const found = [];
  for (const [entry, places] of Object.entries(indexentries)) {
    if (` ${entry} ` === words || !words.includes(` ${entry} `)) continue;
    for (const [file, id, isMain] of places) {
      const score = Math.round((100 * entry.length) / (words.length - 2));
      const anchor = id ? "#" + id : "";
      if (isMain) found.push([docnames[file], titles[file], anchor, null, score, filenames[file], "index"]);
    }
  }
  return found;
}

if (typeof Search !== "undefined") {
  const plain = Search._performSearch;
  Search._performSearch = (query, ...terms) => {
    const results = plain(query, ...terms);
    // The best result is the last one; Sphinx leaves entries that name code at the beginning.
    for (const entry of entriesWithin(query)) {
      if (results.some((result) => result[0] === entry[0] && result[2] === entry[2])) continue;
      let place = results.length;
      while (place > 0 && results[place - 1][4] > entry[4]) place -= 1;
      results.splice(place, 0, entry);
    }
    return results;
  };
}
