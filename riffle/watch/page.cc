#include "riffle/watch/page.h"

#include "riffle/base/text.h"
#include "riffle/report/style.h"

namespace riffle {

std::string_view page_html() {
  return R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>riffle watch</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/watch.css">
<script src="/watch.js" defer></script>
</head>
<body>
<header><h1>Runs</h1><p class="lead" id="lead">Reading ...</p></header>
<main>
<p class="note" id="message" role="status" hidden></p>
<ul class="runs" id="runs"></ul>
<section><h2>Curves</h2><div class="row pairs" id="charts"></div></section>
<section><h2>Pictures</h2>
<p><label>of <select id="of"></select></label></p>
<div id="sheets"></div></section>
</main>
<footer><p>Served by riffle watch, which reads the folders of runs and changes nothing in them.</p></footer>
<noscript><p class="note">This page draws its curves with a script.</p></noscript>
</body>
</html>
)html";
}

std::string page_css() {
  return cat(colour_style(), chart_style(), page_style(), R"css(
[hidden] { display: none !important; }
.runs { list-style: none; margin: 1.5rem 0; padding: 0; }
.runs li { margin: 0 0 0.75rem; padding: 0.7rem 1rem; background: var(--panel); border: 1px solid var(--rule);
  border-left: 4px solid var(--c, var(--rule)); border-radius: 8px; }
.runs label { display: flex; flex-wrap: wrap; align-items: center; gap: 0 0.6rem; font-weight: 600; overflow-wrap: anywhere; min-height: 2rem; }
.runs input { inline-size: 1.15rem; block-size: 1.15rem; flex: none; accent-color: var(--c, var(--accent)); }
.runs label span { min-width: 0; }
.state { margin-left: auto; padding: 0 0.6rem; border-radius: 1rem; font-size: 0.8rem; font-weight: 500;
  background: var(--sunk); color: var(--soft); }
.state.live { background: var(--best); color: var(--accent); }
.state.bad { color: var(--p1); border: 1px solid var(--p1); }
.figures { display: flex; flex-wrap: wrap; gap: 0.15rem 1.4rem; margin: 0.35rem 0 0; font-size: 0.9rem; }
.figures div { display: flex; gap: 0.4rem; } .figures dt { color: var(--soft); }
.figures dd { margin: 0; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.chart .cursor { stroke: var(--axis); stroke-dasharray: 3 3; }
figure .read { min-height: 1.5em; font-variant-numeric: tabular-nums; }
.read span { display: inline-block; margin-right: 1rem; } .read i { font-style: normal; color: var(--c); }
select { font: inherit; max-width: 100%; padding: 0.3rem; color: var(--ink); background: var(--panel);
  border: 1px solid var(--axis); border-radius: 6px; }
.sheet { display: flex; flex-wrap: wrap; gap: 6px; margin: 0.5rem 0 1.5rem; }
.sheet span { display: flex; gap: 1px; } .sheet img { width: 56px; height: 56px; image-rendering: pixelated; }
.sheet .beside { opacity: 0.75; }
.map { position: relative; height: 24rem; margin: 0.5rem 0 1.5rem; overflow: hidden; background: var(--panel);
  border: 1px solid var(--rule); border-radius: 8px; }
.map img { position: absolute; width: 32px; height: 32px; image-rendering: pixelated; }
.map img:hover { z-index: 1; width: 72px; height: 72px; }
h3 { font-size: 1rem; margin: 1rem 0 0.2rem; } h3 + p { font-size: 0.88rem; color: var(--soft); margin: 0; }
)css");
}

}  // namespace riffle
