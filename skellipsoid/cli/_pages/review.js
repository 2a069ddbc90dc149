// The labelling page: one message at a time, with the candidates of the model.
const n = data.messages.length;
const names = new Map(data.classes.map((name) => [name, true])); // to whether the model knows the class
let labels = Array(n).fill(null); // a label, or false where the message was skipped
let at = 0;
let isSaved = true;
let mode = ""; // "search", "new" or none

const status = make("p", { role: "status", class: "quiet said" });
const bar = make("progress", { max: n, value: 0, "aria-label": "messages with a label" });
const count = make("span", {});
const storage = make("div", {});
const stage = make("section", { "aria-label": "message" });
const list = make("ol", { class: "list", tabindex: "0", "aria-label": "all messages" });
const told = make("div", { role: "status" });

const label = (name) => (name === data.open ? `no class of the model (${data.open})` : name);
const known = () => labels.filter((value) => value !== null);

function keep() {
  isSaved = false;
  told.replaceChildren();
  draft.write(labels);
  storage.replaceChildren(draft.note());
}

function learnNames() {
  for (const name of [...names.keys()]) if (!names.get(name)) names.delete(name);
  for (const value of labels) if (value && value !== data.open && !names.has(value)) names.set(value, false);
}

function setLabel(value) {
  labels[at] = value;
  learnNames();
  keep();
  const said = value === false ? "Skipped." : `Labelled ${shown(label(value))}.`;
  go(Math.min(at + 1, n), said);
}

function go(where, said = "") {
  at = Math.max(0, where);
  mode = "";
  draw();
  status.textContent = said;
  stage.querySelector(at < n ? "h2" : "button.main").focus();
}

function choice(key, name, near) {
  return make("button", { type: "button", "aria-keyshortcuts": key, "aria-pressed": String(labels[at] === name),
    click: () => setLabel(name) }, make("kbd", {}, key), words(label(name), { class: "label" }),
  near ? make("span", { class: "near" }, "like: ", words(near)) : null);
}

function draw() {
  const done = known().length;
  bar.value = done;
  const skipped = labels.filter((value) => value === false).length;
  count.textContent = `${done} of ${n}${skipped ? `, ${skipped} skipped` : ""}`;
  drawList();
  if (at >= n) return drawEnd();
  const message = data.messages[at];
  stage.replaceChildren(
    make("h2", { tabindex: "-1" }, `Message ${at + 1} of ${n}`),
    make("blockquote", { dir: "auto", tabindex: "0", "aria-label": "text of the message" }, shown(message.text)),
    make("div", { class: "choices" },
      ...message.candidates.map((name, i) => choice(String(i + 1), name, message.nearest[i])),
      choice("0", data.open, "")),
    make("p", { class: "row" },
      action("/", "another class", () => open("search")),
      action("n", "a new class", () => open("new")),
      action("s", "skip", () => setLabel(false)),
      action("←", "back", () => go(at - 1)),
      action("→", "on", () => go(at + 1))),
    other());
  if (!mode) return;
  stage.querySelector("input").focus();
  stage.lastElementChild.scrollIntoView({ block: "nearest" });
}

const action = (key, what, click) =>
  make("button", { type: "button", click }, make("kbd", {}, key), ` ${what}`);

// Where the label of this message is none of the buttons, it is shown all the same.
function other() {
  if (mode === "search") return search();
  if (mode === "new") return naming();
  const value = labels[at];
  if (value === null || value === data.open || data.messages[at].candidates.includes(value)) return "";
  return make("p", {}, value === false ? "Skipped." : "Labelled ", value ? words(value, { class: "label" }) : "");
}

function open(what) {
  mode = what;
  draw();
}

function search() {
  const found = make("ul", { class: "list", "aria-label": "classes" });
  const input = make("input", { type: "search", "aria-label": "search all classes", placeholder: "search all classes",
    autocomplete: "off", spellcheck: "false", input: fill, keydown(event) {
      const first = found.querySelector("button");
      if (event.key === "Enter" && first) first.click();
      else if (event.key === "ArrowDown" && first) first.focus();
      else return;
      event.preventDefault();
    } });
  function fill() {
    const sought = bare(input.value);
    const fitting = [...names.keys()].filter((name) => bare(name).includes(sought));
    fitting.sort((a, b) => bare(b).startsWith(sought) - bare(a).startsWith(sought));
    found.replaceChildren(...fitting.map((name, i) => make("li", {},
      make("button", { type: "button", click: () => setLabel(name) }, words(name), names.get(name) ? "" : " (new)",
        i ? "" : " ", i ? "" : make("kbd", {}, "Enter")))));
    if (!fitting.length) found.append(make("li", {}, "No class of this name; Escape, then n, names a new one."));
  }
  fill();
  found.addEventListener("keydown", (event) => {
    const next = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    if (!next) return;
    event.preventDefault();
    const beside = event.target.closest("li")[next];
    (beside ? beside.querySelector("button") : input).focus();
  });
  return make("div", {}, make("p", {}, input), found);
}

function naming() {
  const note = make("p", { role: "status" });
  const input = make("input", { type: "text", "aria-label": "name of the new class", placeholder: "name of the new class",
    autocomplete: "off", spellcheck: "false", list: "new-names", input: say });
  const like = () => [...names.keys()].find((name) => name !== input.value.trim() && isLike(name, input.value));
  function say() {
    const name = input.value.trim();
    const others = labels.filter((value, i) => value === name && i !== at).length;
    const near = like();
    if (!name) note.replaceChildren();
    else if (names.get(name)) note.replaceChildren("The model has this class.");
    else if (near) note.replaceChildren("There is a name like this: ", make("button", { type: "button",
      click: () => setLabel(near) }, "take ", words(near)));
    else if (data.numbers && !/^-?\d+$/.test(name)) note.replaceChildren("The classes of this model are whole numbers.");
    else note.replaceChildren(`With this message ${others + 1} of the ${data.fewest} that a class needs.`);
  }
  const take = (event) => {
    event.preventDefault();
    const name = input.value.trim();
    if (name && !(data.numbers && !/^-?\d+$/.test(name))) setLabel(name);
  };
  return make("form", { submit: take }, make("p", { class: "row" }, input,
    make("button", { class: "main" }, "Label")), note,
  make("datalist", { id: "new-names" }, ...[...names.keys()].filter((name) => !names.get(name))
    .map((name) => make("option", { value: name }))));
}

function drawEnd() {
  const left = labels.filter((value) => value === null).length;
  stage.replaceChildren(
    make("h2", { tabindex: "-1" }, left ? `${counted(left, "message")} not done` : "All messages are done"),
    left ? make("p", {}, make("button", { type: "button", click: () => go(labels.indexOf(null)) }, "Go to the first")) : "",
    make("p", {}, make("button", { type: "button", class: "main", click: save }, "Save the labels")),
    make("p", {}, action("←", "back", () => go(at - 1))));
}

function drawList() {
  const items = data.messages.map((message, i) => make("li", {}, make("button", { type: "button",
    "aria-current": String(i === at), click: () => go(i) },
  make("span", { class: "one" }, `${i + 1}. `, words(message.text.slice(0, 200))),
  make("span", { class: "one label" }, labels[i] === null ? "–" : labels[i] === false ? "skipped" : shown(label(labels[i]))))));
  const top = list.scrollTop;
  list.replaceChildren(...items);
  list.scrollTop = top;
  const mine = items[at];
  if (mine && (mine.offsetTop < list.scrollTop || mine.offsetTop + mine.offsetHeight > list.scrollTop + list.clientHeight))
    list.scrollTop = mine.offsetTop - list.clientHeight / 2;
}

function save() {
  const records = [];
  data.messages.forEach((message, i) => {
    if (labels[i] === null) return;
    records.push({ row: message.row, digest: message.digest, label: labels[i] || null, weight: message.weight,
      candidates: message.candidates, skipped: labels[i] === false });
  });
  if (!records.length) return told.replaceChildren(make("p", {}, "There is no label to save yet."));
  download(data.saves, records);
  isSaved = true;
  const skipped = records.filter((record) => record.skipped).length;
  told.replaceChildren(make("p", {}, `${data.saves} holds ${counted(records.length - skipped, "label")}`
    + `${skipped ? ` and ${skipped} skipped` : ""}. Next:`), make("p", {}, make("code", {}, shown(data.next))));
}

function readBack(records) {
  const places = new Map(data.messages.map((message, i) => [`${message.row} ${message.digest}`, i]));
  const mine = (records || []).filter((record) => record && places.has(`${record.row} ${record.digest}`));
  if (!mine.length) return told.replaceChildren(make("p", { class: "warn" }, "The file holds no label of these messages."));
  for (const record of mine) {
    labels[places.get(`${record.row} ${record.digest}`)] = record.skipped ? false : String(record.label);
  }
  learnNames();
  keep();
  const left = labels.indexOf(null);
  go(left < 0 ? n : left, `${counted(mine.length, "message")} read.`);
}

function anew() {
  if (!confirm("Forget all labels of this page?")) return;
  labels = Array(n).fill(null);
  learnNames();
  draft.forget();
  told.replaceChildren();
  go(0, "All labels are forgotten.");
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && mode) return go(at);
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input, select, .list")) return;
  const message = data.messages[at];
  const keys = new Map([["ArrowLeft", () => go(at - 1)]]);
  if (message) {
    message.candidates.forEach((name, i) => keys.set(String(i + 1), () => setLabel(name)));
    keys.set("0", () => setLabel(data.open)).set("s", () => setLabel(false)).set("/", () => open("search"));
    keys.set("n", () => open("new")).set("ArrowRight", () => go(at + 1));
  }
  if (!keys.has(event.key)) return;
  event.preventDefault();
  keys.get(event.key)();
});
window.addEventListener("beforeunload", (event) => {
  if (!isSaved && !draft.works) event.preventDefault();
});

const before = draft.read();
if (Array.isArray(before) && before.length === n) labels = before;
learnNames();
document.body.prepend(
  make("header", {},
    make("h1", {}, `${counted(n, "message")} to label`),
    make("p", { class: "quiet" }, data.notice),
    storage,
    make("p", { class: "row" }, count, make("button", { type: "button", class: "main", click: save }, "Save"),
      reader("Open saved labels", readBack), make("button", { type: "button", click: anew }, "Start anew")),
    bar, told, status),
  make("main", { class: "columns" }, stage, make("nav", { "aria-label": "messages" }, make("h2", {}, "All messages"), list)));
storage.replaceChildren(draft.note());
const start = labels.indexOf(null);
go(start < 0 ? n : start, before ? `A draft with ${counted(known().length, "message")} was found.` : "");
