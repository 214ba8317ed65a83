#include "riffle/report/style.h"

#include <stdexcept>

#include "riffle/base/text.h"

namespace riffle {

std::string_view colour_style() {
  return R"css(
:root { color-scheme: light dark;
  --ground: #fdfdfc; --panel: #ffffff; --sunk: #f4f4f1; --ink: #1c2126; --soft: #59626b; --faint: #84898e;
  --rule: #e3e4e1; --axis: #a9aeb3; --accent: #1f6fc4; --best: #e6f1fb; --on: #ffffff;
  --p0: #358eea; --p1: #c22813; --p2: #177155; --p3: #672d57; --p4: #c28628; --p5: #8440ab; --pn: #83878b; }
@media screen and (prefers-color-scheme: dark) { :root {
  --ground: #15181c; --panel: #1b1f24; --sunk: #20252b; --ink: #e6e9ec; --soft: #a6aeb6; --faint: #7d868f;
  --rule: #2e343b; --axis: #59626b; --accent: #6cb0f5; --best: #1d3550; --on: #15181c;
  --p0: #4878d0; --p1: #c05c38; --p2: #58bc87; --p3: #e6a4d4; --p4: #bba206; --p5: #988ef1; --pn: #83878b; } }
.c0 { --c: var(--p0); } .c1 { --c: var(--p1); } .c2 { --c: var(--p2); } .c3 { --c: var(--p3); }
.c4 { --c: var(--p4); } .c5 { --c: var(--p5); } .cn { --c: var(--pn); }
)css";
}

std::string_view chart_style() {
  return R"css(
svg.chart { display: block; width: 100%; height: auto; fill: none;
  font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", sans-serif; }
svg.chart text { fill: var(--ink); font-variant-numeric: tabular-nums; }
svg.chart .grid line { stroke: var(--rule); stroke-width: 1; }
svg.chart .grid line.base, svg.chart .grid line.tick { stroke: var(--axis); }
svg.chart .ticks text { fill: var(--soft); }
svg.chart text.axis { fill: var(--soft); }
svg.chart text.empty { fill: var(--faint); font-size: 14px; }
svg.chart .series path { stroke: var(--c); stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
svg.chart .series.dashed path { stroke-dasharray: 5 5; }
svg.chart .series.cn path { stroke-width: 1.5; }
svg.chart .series.dense path { stroke-width: 1.5; }
svg.chart .band { fill: var(--c); opacity: 0.16; }
svg.chart .dot { fill: var(--c); stroke: var(--panel); stroke-width: 1; }
svg.chart .target { fill: transparent; }
svg.chart .hidden { opacity: 0; }
svg.chart .hover:hover .dot { opacity: 1; stroke-width: 0; r: 4.5px; }
svg.chart .leader { stroke: var(--c); stroke-width: 1.25; opacity: 0.75; }
svg.chart .bar rect { fill: var(--c); }
svg.chart .bar:hover rect { opacity: 0.85; }
svg.chart .bar .name { font-size: 13px; }
svg.chart .bar .value { font-weight: 600; }
svg.chart .whisker { stroke: var(--ink); stroke-width: 1.5; }
svg.chart .run { fill: var(--panel); stroke: var(--ink); stroke-width: 1; }
svg.chart .reference line { stroke: var(--ink); stroke-width: 1.25; stroke-dasharray: 3 3; opacity: 0.7; }
svg.chart .reference text { fill: var(--soft); }
)css";
}

std::string_view page_style() {
  return R"css(
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); -webkit-text-size-adjust: 100%;
  font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", sans-serif; }
main, header, footer { max-width: 62rem; margin: 0 auto; padding: 0 1.5rem; }
header { padding-top: 3.5rem; }
h1 { font-size: 2.1rem; line-height: 1.2; letter-spacing: -0.015em; margin: 0 0 0.75rem; text-wrap: balance; }
.lead { font-size: 1.15rem; line-height: 1.55; color: var(--soft); max-width: 46rem; margin: 0 0 1rem; }
nav { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; font-size: 0.9rem; padding: 0.6rem 0; border-top: 1px solid var(--rule); }
a { color: var(--accent); text-decoration: none; } a:hover { text-decoration: underline; }
section { margin-top: 2.75rem; }
h2 { font-size: 1.35rem; line-height: 1.3; letter-spacing: -0.01em; margin: 0 0 0.75rem; }
p { max-width: 46rem; margin: 0 0 1rem; }
.note { max-width: 46rem; margin: 1.25rem 0; padding: 0.9rem 1.2rem; background: var(--sunk);
  border-left: 3px solid var(--accent); border-radius: 0 6px 6px 0; font-size: 1.05rem; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: 1px; margin: 1.25rem 0;
  background: var(--panel); border: 1px solid var(--rule); border-radius: 8px; overflow: hidden; }
.facts div { outline: 1px solid var(--rule); padding: 0.75rem 1rem; }
.facts dt { font-size: 0.82rem; color: var(--soft); }
.facts dd { margin: 0; font-size: 1.3rem; font-weight: 600; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
figure { margin: 1.25rem 0; padding: 1rem 1.1rem 0.9rem; background: var(--panel); border: 1px solid var(--rule); border-radius: 8px; }
figure h3 { font-size: 1rem; line-height: 1.35; margin: 0 0 0.6rem; }
figcaption { margin-top: 0.7rem; font-size: 0.88rem; line-height: 1.5; color: var(--soft); max-width: 46rem; }
.scroll { overflow-x: auto; background: linear-gradient(to right, var(--ground) 1rem, transparent) left / 2rem 100% no-repeat local,
  linear-gradient(to left, var(--ground) 1rem, transparent) right / 2rem 100% no-repeat local,
  linear-gradient(to right, var(--axis), transparent) left / 0.5rem 100% no-repeat scroll,
  linear-gradient(to left, var(--axis), transparent) right / 0.5rem 100% no-repeat scroll; }
figure .scroll { --ground: var(--panel); } .scroll svg.chart { min-width: 34rem; }
.row { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 17rem), 1fr)); gap: 1.1rem; margin: 1.25rem 0; }
.row.pairs { grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); }
.row figure { margin: 0; } .row .scroll svg.chart { min-width: 0; }
img { display: block; max-width: 100%; height: auto; border-radius: 3px; } img.pixels { image-rendering: pixelated; }
table { border-collapse: collapse; font-size: 0.95rem; min-width: 50%; }
.table { margin: 1.25rem 0; } .table caption { text-align: left; font-size: 0.88rem; color: var(--soft); padding-bottom: 0.5rem; }
caption span { display: block; max-width: min(46rem, calc(100vw - 2rem)); }
th, td { padding: 0.45rem 1.1rem 0.45rem 0.5rem; text-align: left; border-bottom: 1px solid var(--rule); vertical-align: baseline; }
thead th { font-weight: 600; font-size: 0.85rem; line-height: 1.35; color: var(--soft); border-bottom: 1px solid var(--axis); vertical-align: bottom; }
thead .unit { font-weight: 400; }
tbody th { font-weight: 500; } tbody th.marked { white-space: nowrap; }
th.n, td.n { text-align: right; font-variant-numeric: tabular-nums; } td.n { white-space: nowrap; } tbody td:not(.n), tbody th { min-width: 5.5rem; }
.two-names :is(th, td) { padding-right: 0.55rem; } .two-names tbody th { white-space: nowrap; } .two-names tbody td:nth-child(2) { min-width: 9rem; }
td .spread { display: inline-block; text-align: left; color: var(--soft); font-size: 0.88em; font-weight: 400; padding-left: 0.35em; }
td.best { font-weight: 700; background: var(--best); }
tr.reference td, tr.reference th { color: var(--soft); font-style: italic; }
td.none { color: var(--faint); }
.swatch { display: inline-block; width: 0.7em; height: 0.7em; border-radius: 2px; margin-right: 0.6em; background: var(--c); }
pre { margin: 1rem 0; padding: 0.85rem 1.1rem; background: var(--sunk); border: 1px solid var(--rule); border-radius: 6px; overflow-x: auto;
  font: 0.87rem/1.55 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; tab-size: 4; }
details { margin: 1rem 0; } summary { cursor: pointer; color: var(--accent); }
footer { margin-top: 3.5rem; padding-top: 1rem; padding-bottom: 3rem; font-size: 0.85rem; color: var(--soft); }
footer p { border-top: 1px solid var(--rule); padding-top: 1rem; max-width: none; }
@media (max-width: 40rem) { header { padding-top: 2rem; } h1 { font-size: 1.65rem; } main, header, footer { padding-left: 1rem; padding-right: 1rem; } }
@media print {
  @page { margin: 16mm; } :root { --ground: #ffffff; }
  body { font-size: 10.5pt; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  main, header, footer { max-width: none; padding-left: 0; padding-right: 0; } header { padding-top: 0; } nav { display: none; }
  section { margin-top: 1.5rem; } h2, h3, .table caption { break-after: avoid; } figure, .facts, .note, tr { break-inside: avoid; }
  .scroll { overflow: visible; } .scroll svg.chart { min-width: 0; } pre { white-space: pre-wrap; }
}
)css";
}

std::string standalone_svg(const std::string& svg) {
  const std::string_view begin = "<svg ";
  const auto first_end = svg.find('>');
  if (!svg.starts_with(begin) || first_end == std::string::npos) {
    throw std::logic_error("standalone_svg needs the <svg> element of a chart");
  }
  const auto box = svg.find("viewBox=\"0 0 ") + 13;
  const auto space = svg.find(' ', box);
  const std::string width = svg.substr(box, space - box);
  const std::string height = svg.substr(space + 1, svg.find('"', space) - space - 1);
  return cat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", width, "\" height=\"", height,
             "\" ", svg.substr(begin.size(), first_end - begin.size()), ">\n<style>",
             colour_style(), chart_style(), "svg.chart { background: var(--panel); }\n</style>",
             svg.substr(first_end + 1));
}

}  // namespace riffle
