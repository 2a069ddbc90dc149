// The figures of a model, as tables and pictures.
const SVG = "http://www.w3.org/2000/svg";

function draw(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const percent = (value) => (value === null || Number.isNaN(value) ? "–" : String(Math.round(value)));

// A table whose rows can be sorted by each column. A cell is text, a number, or [what sorts, what is shown].
function table(caption, names, rows) {
  const body = make("tbody");
  const value = (cell) => (Array.isArray(cell) ? cell[0] : cell);
  const fill = (sorted) => body.replaceChildren(...sorted.map((row) => make("tr", {}, ...row.map((cell) => {
    const isNumber = typeof cell === "number";
    const inside = Array.isArray(cell) ? cell[1] : isNumber ? percent(cell) : words(cell);
    return make("td", { class: isNumber ? "number" : "" }, inside);
  }))));
  const heads = names.map((name, k) => make("th", { scope: "col", class: rows.length && typeof rows[0][k] === "number" ? "number" : "" },
    make("button", { type: "button", click: () => {
      const rising = heads[k].getAttribute("aria-sort") !== "ascending";
      heads.forEach((head) => head.removeAttribute("aria-sort"));
      heads[k].setAttribute("aria-sort", rising ? "ascending" : "descending");
      const compare = (a, b) => (typeof a === "number" ? a - b : String(a).localeCompare(String(b)));
      fill([...rows].sort((a, b) => compare(value(a[k]), value(b[k])) * (rising ? 1 : -1)));
    } }, name)));
  fill(rows);
  return make("div", { class: "table", tabindex: "0", role: "region", "aria-label": caption },
    make("table", {}, make("caption", { class: "quiet" }, caption), make("thead", {}, make("tr", {}, ...heads)), body));
}

// A percentage with its interval: 72 (61–80), and a line from 0 to 100.
function interval([mean, low, high]) {
  const at = (percentage) => 4 + 1.12 * percentage;
  const picture = draw("svg", { width: 120, height: 14, viewBox: "0 0 120 14", "aria-hidden": "true" },
    draw("line", { x1: at(0), x2: at(100), y1: 7, y2: 7, stroke: "var(--line)" }),
    draw("line", { x1: at(low), x2: at(high), y1: 7, y2: 7, stroke: "var(--bar)", "stroke-width": 5 }),
    draw("circle", { cx: at(mean), cy: 7, r: 4, fill: "var(--accent)" }));
  return make("span", {}, make("span", { class: "one" }, `${mean} (${low}–${high})`), picture);
}

function forecasts() {
  if (!data.forecasts.length) return null;
  const names = Object.keys(data.forecasts[0].figures);
  return make("section", {}, make("h2", {}, "What users will see"),
    make("p", {}, "Of 100 known messages, and of 100 open ones, each with an interval of 90 %. It is a forecast, not a test: "
      + "users word their messages otherwise than training texts. Thirty labels tell how much."),
    table("What is expected of users’ messages", ["threshold", ...names], data.forecasts.map((row) =>
      [row.name, ...names.map((name) => [row.figures[name][0], interval(row.figures[name])])])));
}

function histogram(threshold) {
  const [width, height, middle] = [640, 240, 120];
  const { edges, known, open } = threshold;
  const x = (score) => 10 + (width - 20) * (score - edges[0]) / (edges[edges.length - 1] - edges[0]);
  const most = Math.max(...known, ...open, 1e-9);
  const bars = (heights, sign, fill) => heights.map((density, i) => {
    const size = (middle - 22) * density / most;
    return draw("rect", { x: x(edges[i]), width: Math.max(1, x(edges[i + 1]) - x(edges[i]) - 1),
      y: sign > 0 ? middle - size : middle, height: size, fill });
  });
  const line = draw("line", { y1: 0, y2: height, stroke: "var(--bad)", "stroke-width": 2 });
  const move = (score) => { line.setAttribute("x1", x(score)); line.setAttribute("x2", x(score)); };
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", width, height,
    "aria-label": "Histogram of scores: known texts upwards, open ones downwards, and the threshold" },
  ...bars(known, 1, "var(--bar)"), ...bars(open, -1, "var(--warn)"),
  draw("line", { x1: 0, x2: width, y1: middle, y2: middle, stroke: "var(--text)" }),
  draw("text", { x: 10, y: 14 }, "known texts ↑"), draw("text", { x: 10, y: height - 4 }, "open texts ↓"), line);
  return { picture, move };
}

function thresholds() {
  const threshold = data.threshold;
  if (!threshold) return null;
  const { picture, move } = histogram(threshold);
  const own = threshold.curve.findIndex((point) => point[0] === threshold.curve.reduce((best, each) =>
    (Math.abs(each[0] - threshold.offset) < Math.abs(best[0] - threshold.offset) ? each : best))[0]);
  const said = make("output", {});
  const slider = make("input", { type: "range", min: 0, max: threshold.curve.length - 1, value: own, class: "no-print",
    input: say });
  function say() {
    const [score, right, wrong, rejected, detected] = threshold.curve[slider.value];
    move(score);
    said.textContent = `${Number(slider.value) === own ? "The threshold of this model" : "This threshold"}: of 100 known texts `
      + `${percent(right)} are right, ${percent(wrong)} wrong, ${percent(rejected)} handed over; of 100 open ones ${percent(detected)} are detected.`;
  }
  say();
  const what = data.tested ? "test texts" : "held-out training texts and of texts of held-out classes";
  return make("section", {}, make("h2", {}, "The threshold"),
    make("p", {}, `Scores of ${what}: a text whose score lies left of the line is predicted open.`), picture, make("p", { class: "no-print" }, make("label", {}, "Move the threshold: ", slider)), make("p", {}, said),
    table("Other thresholds, of 100 known texts, and of 100 open ones", ["threshold", "right", "wrong", "handed over", "detected"],
      threshold.rows.map((row) => [row.name + (row.is_of_model ? " (this model)" : ""), row.right, row.wrong, row.rejected, row.detected])));
}

function missed(texts) {
  return make("details", {}, make("summary", {}, counted(texts.length, "text")),
    make("ul", {}, ...texts.map(([text, label]) => make("li", {}, words(text), " → ", words(label, { class: "label" })))));
}

function classes() {
  if (!data.classes.length) return null;
  const names = ["class", "texts", "right", "wrong", "handed over", "remarks", ...(data.tested ? ["texts not right"] : [])];
  return make("section", {}, make("h2", {}, "Classes, the worst first"),
    data.tested ? null : make("p", {}, "By training texts that were left out; train --report also shows the texts that go wrong."),
    table("Results of each class, of 100 of its texts", names, data.classes.map((row) => [row.name, row.texts, row.right, row.wrong,
      row.rejected, row.advice, ...(data.tested ? [[row.missed.length, row.missed.length ? missed(row.missed) : "0"]] : [])])));
}

function opened() {
  if (!data.opened) return null;
  return make("section", {}, make("h2", {}, "Open texts"),
    make("p", {}, `Of ${counted(data.opened.texts, "open text")} ${data.opened.detected} are detected.`),
    data.opened.missed.length ? missed(data.opened.missed) : null);
}

function list(title, items) {
  return items.length ? make("section", {}, make("h2", {}, title), make("ul", {}, ...items.map((item) => make("li", {}, item)))) : null;
}

document.body.prepend(
  make("header", {}, make("h1", {}, words(data.title)), make("div", { class: "quiet" },
    ...data.facts.map(([name, value]) => make("div", {}, `${name}: `, words(value)))),
  make("p", { class: "quiet" }, "This page holds texts: give it to those alone who may read them. It sends nothing.")),
  make("main", {}, ...[forecasts(), thresholds(), classes(), opened(),
    list("Pairs that are confused", data.pairs.map(([label, predicted, n]) =>
      make("span", {}, words(label), " taken for ", words(predicted), `: ${counted(n, "text")}`))),
    list("What the check of the texts found", data.findings.map((finding) => words(finding))),
  ].filter((part) => part !== null)));
window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => { each.open = true; }));
