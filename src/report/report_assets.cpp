#include "report/report_assets.h"

namespace tessera::report {

// Colors are those of the series: blue for training, orange for the test data and for mistakes.
const std::string_view kReportStyle = R"css(
:root {
  color-scheme: light dark;
  --page: #f5f6f8; --card: #ffffff; --line: #e3e6ea; --grid: #eceef1;
  --text: #16191d; --soft: #5c6570;
  --train: #2563c9; --test: #d1600a; --train-rgb: 37 99 201; --test-rgb: 209 96 10; --on-strong: #ffffff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0e1116; --card: #161a21; --line: #272d37; --grid: #232933;
    --text: #e8ebef; --soft: #98a2ae;
    --train: #6ea8fe; --test: #ff9e57; --train-rgb: 110 168 254; --test-rgb: 255 158 87; --on-strong: #0b0e13;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--page); color: var(--text); line-height: 1.5; font-size: 15px;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, Inter, "Noto Sans", "DejaVu Sans", sans-serif;
  font-variant-numeric: tabular-nums;
}
main { max-width: 1180px; margin: 0 auto; padding: 40px 28px 64px; }
h1, h2, h3, p, figure, dl, dd, pre { margin: 0; }
h1 { font-size: 30px; line-height: 1.2; letter-spacing: -0.02em; font-weight: 680; }
h2 { font-size: 19px; letter-spacing: -0.01em; font-weight: 650; margin: 44px 0 12px; }
h3 { font-size: 15px; font-weight: 620; }
.note { color: var(--soft); margin-top: -8px; margin-bottom: 14px; max-width: 96ch; }
.brand { display: flex; align-items: center; gap: 9px; color: var(--soft); font-weight: 600; margin-bottom: 18px; }
.brand svg { width: 20px; height: 20px; }
.brand time { margin-left: auto; font-weight: 400; font-size: 14px; white-space: nowrap; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 12px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(158px, 1fr)); gap: 12px; margin-top: 26px; }
.tile { padding: 15px 18px 13px; }
.tile dt { color: var(--soft); font-size: 13px; }
.tile dd { font-size: 25px; font-weight: 660; letter-spacing: -0.02em; line-height: 1.3; white-space: nowrap; }
.tile dd small { font-size: 15px; font-weight: 500; color: var(--soft); letter-spacing: 0; }
.tile p { color: var(--soft); font-size: 13px; }
.tile.main dd { color: var(--test); }
.charts { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 14px; }
.chart { padding: 15px 14px 10px 10px; min-width: 0; }
.chart figcaption { display: flex; flex-wrap: wrap; align-items: baseline; gap: 4px 16px; padding: 0 4px 8px 10px; }
.chart h3 { margin-right: auto; }
.key { color: var(--soft); font-size: 13px; }
.key::before {
  content: ""; display: inline-block; width: 14px; height: 3px; border-radius: 2px; margin-right: 6px;
  vertical-align: 4px; background: var(--train);
}
.key.test::before { background: var(--test); }
.plot { position: relative; }
.plot > svg { display: block; width: 100%; height: auto; }
.plot text { font-size: 12px; fill: var(--soft); }
.plot text.y { text-anchor: end; dominant-baseline: central; }
.plot text.x { text-anchor: middle; }
.grid { stroke: var(--grid); stroke-width: 1; }
.line { fill: none; stroke: var(--train); stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.line.test { stroke: var(--test); }
.line.pale { opacity: 0.38; stroke-width: 1; }
.dot { fill: var(--train); stroke: var(--card); stroke-width: 1.5; }
.dot.test { fill: var(--test); }
.rule { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 3 3; }
.tip {
  position: absolute; top: 4px; pointer-events: none; background: var(--card); border: 1px solid var(--line);
  border-radius: 8px; padding: 6px 10px; font-size: 13px; white-space: nowrap; box-shadow: 0 4px 14px rgb(0 0 0 / 0.16);
}
.tip b { font-weight: 620; margin-left: 10px; float: right; }
.scroll { overflow-x: auto; }
table { border-collapse: separate; border-spacing: 0; }
.matrix { padding: 18px; }
.matrix table { border-spacing: 2px; margin: 0 auto; }
.matrix th { font-weight: 500; font-size: 13px; color: var(--soft); }
.matrix thead th { vertical-align: bottom; height: 92px; padding: 0; }
.matrix thead span { writing-mode: vertical-rl; transform: rotate(180deg); white-space: nowrap; padding-top: 7px; }
.matrix tbody th { text-align: right; padding-right: 10px; white-space: nowrap; }
.matrix td {
  width: 62px; min-width: 40px; height: 38px; text-align: center; font-size: 13px; border-radius: 5px;
  background: rgb(var(--test-rgb) / var(--a));
}
.matrix td.hit { background: rgb(var(--train-rgb) / var(--a)); font-weight: 620; }
.matrix td.strong { color: var(--on-strong); }
.matrix td.none { color: transparent; background: var(--grid); }
.matrix td.rate, .matrix thead th.rate { padding-left: 12px; background: none; color: var(--text); font-weight: 620; white-space: nowrap; }
.matrix thead th.rate { color: var(--soft); font-weight: 500; height: auto; padding-bottom: 4px; }
.rows { padding: 8px 18px; }
.rows table { width: 100%; }
.rows th, .rows td { padding: 7px 10px; text-align: right; white-space: nowrap; border-top: 1px solid var(--grid); }
.rows thead th { border: 0; color: var(--soft); font-weight: 500; font-size: 13px; }
.rows th:first-child, .rows td:first-child, .rows .text { text-align: left; }
.gallery { display: flex; flex-wrap: wrap; gap: 4px; }
.gallery img { width: 84px; image-rendering: pixelated; }
.gallery figure { width: 128px; overflow-wrap: anywhere; }
.gallery figure img { width: 128px; image-rendering: auto; }
.mistakes { display: grid; grid-template-columns: repeat(auto-fill, minmax(118px, 1fr)); gap: 12px; }
.mistake { padding: 10px 10px 11px; font-size: 13px; line-height: 1.4; }
.mistake img {
  display: block; width: 100%; aspect-ratio: 1; object-fit: contain; border-radius: 7px; margin-bottom: 9px;
  background: #000; image-rendering: pixelated;
}
.mistake .truth { font-weight: 620; font-size: 14px; }
.mistake .wrong { color: var(--test); }
.mistake .wrong span { white-space: nowrap; }
.mistake .sure { color: var(--soft); }
.pair { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 14px; align-items: start; }
.facts { padding: 8px 20px; }
.facts div { display: flex; justify-content: space-between; gap: 20px; padding: 8px 0; }
.facts div + div { border-top: 1px solid var(--grid); }
.facts dt { color: var(--soft); white-space: nowrap; }
.facts dd { text-align: right; overflow-wrap: anywhere; }
pre {
  padding: 16px 20px; font-size: 13px; line-height: 1.55; overflow: auto; max-height: 460px;
  font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
footer { color: var(--soft); font-size: 13px; margin-top: 40px; }
@media (max-width: 860px) {
  main { padding: 26px 16px 48px; }
  h1 { font-size: 25px; }
  .tile.main { grid-column: 1 / -1; }
}
@media (max-width: 700px) {
  .charts, .pair { grid-template-columns: minmax(0, 1fr); }
}
@media (max-width: 520px) {
  .tiles { grid-template-columns: 1fr 1fr; gap: 9px; }
  .tile { padding: 12px 14px 11px; }
  .tile dd { font-size: 21px; }
  .plot text { font-size: 17px; }
  .plot text.name { display: none; }
  .chart { padding-left: 4px; }
  .matrix { padding: 10px 6px; }
  .matrix table { border-spacing: 1px; }
  .matrix th { font-size: 11px; }
  .matrix tbody th { padding-right: 5px; }
  .matrix td { width: 26px; min-width: 24px; height: 28px; font-size: 10px; border-radius: 3px; }
  .matrix td.rate, .matrix thead th.rate { display: none; }
  .mistakes { grid-template-columns: repeat(auto-fill, minmax(104px, 1fr)); gap: 9px; }
}
@media print {
  body { background: none; }
  .card { break-inside: avoid; }
  pre { max-height: none; }
}
)css";

// Shows the values under the pointer. The page is complete without it.
const std::string_view kReportScript = R"js(
for (const figure of document.querySelectorAll("figure[data-points]")) {
  const series = JSON.parse(figure.dataset.points);
  const svg = figure.querySelector("svg");
  const tip = figure.querySelector(".tip");
  const make = (name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.style.display = "none";
    return svg.appendChild(element);
  };
  const rule = make("path", {class: "rule"});
  const dots = series.map((one) => make("circle", {class: "dot " + one.c, r: 4.5}));
  const hide = () => {
    tip.hidden = true;
    for (const element of [rule, ...dots]) element.style.display = "none";
  };
  const show = (event) => {
    const box = svg.getBoundingClientRect();
    const scale = box.width / svg.viewBox.baseVal.width;
    const x = (event.clientX - box.left) / scale;
    const nearest = series.map((one) => one.p.length === 0 ? null :
        one.p.reduce((best, point) => Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best));
    const known = nearest.filter((point) => point !== null);
    if (known.length === 0) return;
    const lead = known.reduce((best, point) => Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best);
    tip.replaceChildren(lead[2]);
    nearest.forEach((point, i) => {
      dots[i].style.display = "none";
      if (point === null || Math.abs(point[0] - lead[0]) > 40) return;
      dots[i].style.display = "";
      dots[i].setAttribute("cx", point[0]);
      dots[i].setAttribute("cy", point[1]);
      const row = document.createElement("div");
      const value = document.createElement("b");
      row.className = "key " + series[i].c;
      value.textContent = point[3];
      row.append(series[i].n, value);
      tip.append(row);
    });
    rule.style.display = "";
    rule.setAttribute("d", `M${lead[0]} 12V226`);
    tip.hidden = false;
    const left = lead[0] * scale;
    tip.style.left = left > box.width / 2 ? `${left - tip.offsetWidth - 12}px` : `${left + 12}px`;
  };
  svg.addEventListener("pointermove", show);
  svg.addEventListener("pointerdown", show);
  svg.addEventListener("pointerleave", hide);
}
)js";

}  // namespace tessera::report
