"use strict";
const {figures, landscapes, themes} =
  JSON.parse(document.getElementById("findings").textContent);
const plots = Object.keys(figures).map(id => document.getElementById(id));
const isDark = matchMedia("(prefers-color-scheme: dark)");
const PRINT_WIDTH = 680;

const themeNow = () => themes[isDark.matches ? "dark" : "light"];

/** Shows or hides traces; `wanted` says of a trace's meta whether it is shown. */
function show(plot, concerns, wanted) {
  const numbers = [], shown = [];
  plot.data.forEach((trace, number) => {
    if (trace.meta && concerns(trace.meta)) {
      numbers.push(number);
      shown.push(wanted(trace.meta));
    }
  });
  if (numbers.length) Plotly.restyle(plot, {visible: shown}, numbers);
}

const hidden = new Set();
let axis = "evaluations";
const isShown = meta => !hidden.has(meta.method) && (!meta.axis || meta.axis === axis);

function showMethods() {
  for (const plot of plots) show(plot, meta => meta.method !== undefined, isShown);
  for (const button of document.querySelectorAll(".legend button")) {
    button.setAttribute("aria-pressed", String(!hidden.has(button.dataset.method)));
  }
}

const buttons = [...document.querySelectorAll(".legend button")];
for (const button of buttons) {
  const method = button.dataset.method;
  button.addEventListener("click", () => {
    hidden.has(method) ? hidden.delete(method) : hidden.add(method);
    showMethods();
  });
  button.addEventListener("dblclick", () => {
    const isAlone = buttons.every(b => b === button || hidden.has(b.dataset.method));
    hidden.clear();
    if (!isAlone) for (const b of buttons) if (b !== button) hidden.add(b.dataset.method);
    showMethods();
  });
}

for (const choice of document.querySelectorAll("select.axis")) {
  choice.addEventListener("change", () => {
    axis = choice.value;
    const title = choice.selectedOptions[0].dataset.title;
    for (const plot of plots.filter(p => p.id.startsWith("curves-"))) {
      show(plot, meta => meta.axis !== undefined, isShown);
      Plotly.relayout(plot, {"xaxis2.title.text": title, "xaxis.autorange": true});
    }
  });
}

for (const choice of document.querySelectorAll("select.kind")) {
  choice.addEventListener("change", () => {
    const plot = document.getElementById(`heat-${choice.dataset.board}`);
    show(plot, meta => meta.kind !== undefined, meta => meta.kind === choice.value);
  });
}

/** Draws what a search did: at which rows of the landscape it was, evaluation by evaluation. */
function drawPath(board, name) {
  const land = landscapes[board];
  const {at, seen, better} = land.runs[name] || {at: [], seen: [], better: []};
  const visits = new Map();
  at.forEach((row, i) => {
    visits.set(row, [...(visits.get(row) || []), i + 1]);
  });
  const rows = [...visits.keys()];
  const heat = {
    x: [rows.map(row => land.x[row])],
    y: [rows.map(row => land.y[row])],
    text: [rows.map(row => String(visits.get(row)[0]))],
    hovertext: [rows.map(row => `evaluation ${visits.get(row).join(", ")}<br>${land.texts[row]}`)],
  };
  const ends = [], labels = [], knobs = [];
  for (const i of better) {
    const heights = land.heights[at[i]];
    heights.forEach((height, knob) => {
      ends.push(height);
      knobs.push(knob);
      labels.push(knob === heights.length - 1 ? ` ${i + 1}` : "");
    });
    ends.push(null); knobs.push(null); labels.push("");
  }
  const drawn = {
    heat,
    knobs: {x: [knobs], y: [ends], text: [labels], hovertext: [labels]},
  };
  for (const kind of ["heat", "knobs"]) {
    const plot = document.getElementById(`${kind}-${board}`);
    const trace = plot.data.findIndex(t => t.meta && t.meta.path);
    Plotly.restyle(plot, drawn[kind], [trace]);
  }
  listPath(board, land, {at, seen, better});
}

function listPath(board, land, {at, seen, better}) {
  const isBetter = new Set(better);
  const lines = at.map((row, i) => {
    const line = document.createElement("tr");
    if (isBetter.has(i)) line.className = "best";
    const cells = [i + 1, land.texts[row], seen[i]];
    for (const text of cells) line.appendChild(document.createElement("td")).textContent = text;
    return line;
  });
  const body = document.querySelector(`#path-${board} tbody`);
  body.replaceChildren(...lines);
  document.getElementById(`path-${board}`).hidden = lines.length === 0;
}

const searches = [...document.querySelectorAll("select.path")];
for (const choice of searches) {
  choice.addEventListener("change", () => drawPath(choice.dataset.board, choice.value));
}

function setTheme(theme, size) {
  for (const plot of plots) Plotly.relayout(plot, {template: theme, ...size});
}
isDark.addEventListener("change", () => setTheme(themeNow(), {}));
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details")) part.open = true;
  setTheme(themes.light, {width: PRINT_WIDTH});
});
addEventListener("afterprint", () => setTheme(themeNow(), {width: null, autosize: true}));

for (const plot of plots) {
  const {data, layout} = figures[plot.id];
  Plotly.newPlot(
    plot, data, {...layout, template: themeNow()}, {displaylogo: false, responsive: true},
  );
}
for (const choice of searches) drawPath(choice.dataset.board, choice.value);
