#include "riffle/watch/page.h"

namespace riffle {

// Everything that came from a run enters the page by textContent or an attribute, never as markup.
std::string_view page_script() {
  return R"js('use strict';
const kEvery = 2000, kColours = 6, kMostShown = 6, kSilent = 10;
const token = new URLSearchParams(location.hash.slice(1)).get('token');
const byId = id => document.getElementById(id);
const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};
const draw = (parent, tag, attributes, text) => {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
};

async function get(path) {
  const headers = token ? {Authorization: 'Bearer ' + token} : {};
  const response = await fetch(path, {headers, signal: AbortSignal.timeout(30000)});
  const answer = await response.json();
  if (answer.error) throw new Error(answer.error);
  return answer;
}

const number = (value, digits = 0) => value == null ? '–' :
  value.toLocaleString('en', {minimumFractionDigits: digits, maximumFractionDigits: digits});
const short = value => value == null ? '–' : Math.abs(value) >= 1000 ? number(value) :
  Number(value.toPrecision(3)).toString();
const ago = seconds => seconds < 90 ? number(seconds, seconds < 10 ? 1 : 0) + ' s' :
  seconds < 5400 ? number(seconds / 60) + ' min' : number(seconds / 3600, 1) + ' h';

const runs = new Map();  // by id: {facts, row, curves, stamp, shown, colour}
let charts = [];
let chosen = false;  // whose pictures are shown

// The state in a word, and how it should look.
function stateOf(facts) {
  const status = facts.status;
  if (facts.error) return [facts.error, 'bad'];
  if (!status) return ['no status', ''];
  if (['done', 'stopped', 'failed'].includes(status.state)) {
    return [status.state, status.state === 'failed' ? 'bad' : ''];
  }
  if (status.age > kSilent) return ['ended without a word, ' + ago(status.age) + ' ago', 'bad'];
  if (status.unreachable > 0) {
    const seconds = status.unreachable + status.age, since = new Date(Date.now() - 1000 * seconds);
    return [`source unreachable, retrying since ${since.toLocaleTimeString()} (${ago(seconds)})`, 'bad'];
  }
  if (status.since_sample > kSilent) return ['no picture for ' + ago(status.since_sample), 'bad'];
  return [status.state, 'live'];
}

function figuresOf(facts) {
  const newest = facts.newest || {}, status = facts.status || {}, list = [];
  const add = (name, value) => list.push([name, value]);
  const update = status.update ?? newest.update ?? 0;
  add('update', number(update) + (facts.max_updates > 0 ? ' of ' + number(facts.max_updates) : ''));
  if (status.state === 'filling') {
    add('filling', number(status.buffer_size) + ' of ' + number(status.buffer_capacity));
  }
  if (newest.loss !== undefined) {
    add('loss', number(newest.loss, 4));
    add('gauge', number(newest.std, 3));
    add('training', number(newest.updates_per_s * facts.batch) + ' images/s');
    add('stream', number(newest.samples_per_s) + ' samples/s');
  }
  if (facts.status) {
    add('delivered', number(status.delivered));
    add('used', number(status.used));
    add('ahead', number(Math.max(0, status.delivered - status.used)));
    // The stream waits where training does not keep up; what a camera loses meanwhile it does not say.
    add('dropped', facts.live && newest.stream_held_share > 0 ?
      `none here, but the source waited ${number(100 * newest.stream_held_share)} % of the time` : 'none');
    if (status.age <= kSilent) add('last picture', ago(status.since_sample + status.age) + ' ago');
  }
  for (const [key, title] of [['skipped_', 'skipped'], ['evicted_', 'left']]) {
    const reasons = Object.keys(newest).filter(name => name.startsWith(key) && newest[name] > 0);
    if (reasons.length === 0) continue;
    add(title, reasons.map(name => number(newest[name]) + ' ' +
      name.slice(key.length).replaceAll('_', ' ')).join(', '));
  }
  add('buffer', facts.buffer + (facts.capacity ? ' ' + facts.capacity : ''));
  if (facts.checkpoint) add('checkpoint', facts.checkpoint);
  add('from', facts.stream ?? '–');
  return list;
}

function newRow(id) {
  const box = make('input', {type: 'checkbox'});
  const run = {shown: [...runs.values()].filter(other => other.shown).length < kMostShown};
  box.checked = run.shown;
  box.addEventListener('change', () => { run.shown = box.checked; colour(); tick(); });
  run.name = make('span');
  run.state = make('span', {class: 'state'});
  run.figures = make('dl', {class: 'figures'});
  run.row = make('li', {'data-run': id}, make('label', {}, box, run.name, run.state), run.figures);
  runs.set(id, run);
  byId('of').append(run.option = make('option', {value: id}));
  return run;
}

function colour() {
  let place = 0;
  for (const run of runs.values()) {
    run.colour = run.shown ? 'c' + place++ % kColours : '';
    run.row.className = run.colour;
  }
}

function showRuns(answer) {
  const here = new Set(answer.runs.map(facts => facts.id));
  for (const [id, run] of runs) {
    if (here.has(id)) continue;
    run.row.remove();
    run.option.remove();
    runs.delete(id);
  }
  const rows = byId('runs');
  for (const [place, facts] of answer.runs.entries()) {
    const run = runs.get(facts.id) ?? newRow(facts.id);
    run.facts = facts;
    run.name.textContent = run.option.textContent = facts.name;
    const [word, look] = stateOf(facts);
    run.state.textContent = word;
    run.state.className = 'state ' + look;
    run.figures.replaceChildren(...figuresOf(facts).map(([name, value]) => make('div', {},
      make('dt', {}, name), make('dd', {}, value))));
    const next = rows.children[place] ?? null;  // a row that is moved would lose the focus
    if (next !== run.row) rows.insertBefore(run.row, next);
  }
  colour();
  if (!chosen) {  // by the reader: one in progress, or else one with pictures
    const best = answer.runs.find(facts => stateOf(facts)[1] === 'live') ??
      answer.runs.find(facts => facts.checkpoint);
    if (best) byId('of').value = best.id;
  }
  const live = answer.runs.filter(facts => stateOf(facts)[1] === 'live').length;
  byId('lead').textContent = answer.runs.length === 0 ?
    'There is no run in ' + answer.folder + ' yet.' :
    `${answer.runs.length} in ${answer.folder}, ${live} of them in progress.`;
}

function ticks(low, high, count) {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(times => times * power).find(size => size >= raw);
  const all = [];
  for (let i = Math.ceil(low / step); i * step <= high + step * 1e-9; ++i) all.push(i * step);
  return all;
}

function drawChart(chart, shown) {
  const width = 460, height = 250, left = 54, right = 12, top = 10, bottom = 40;
  const lines = shown.flatMap(run => {
    const {updates, curves, probes} = run.curves;
    if (chart.key.startsWith('probe_')) {
      const sets = [...new Set(probes.map(probe => probe.val))];
      return sets.map(set => {
        const some = probes.filter(probe => probe.val === set);
        return {run, set: sets.length > 1 ? ' on ' + set : '', x: some.map(probe => probe.update),
          y: some.map(probe => probe[chart.key])};
      });
    }
    const factor = chart.factor * (chart.per_batch ? run.facts.batch : 1);
    return [{run, set: '', x: updates, y: (curves[chart.key] ?? [])
      .map(value => value == null ? null : value * factor)}];
  }).filter(line => line.y.some(value => value != null));
  const seen = lines.some(line => line.y.some(value => Math.abs(value ?? 0) > chart.least));
  chart.figure.hidden = !seen;
  if (!seen) return;
  let low = Infinity, high = -Infinity, begin = Infinity, end = -Infinity;
  for (const line of lines) {
    line.y.forEach((value, i) => {
      if (value == null) return;
      low = Math.min(low, value); high = Math.max(high, value);
      begin = Math.min(begin, line.x[i]); end = Math.max(end, line.x[i]);
    });
  }
  if (high - low < 1e-9 * Math.abs(high) || high === low) {
    const room = Math.abs(high) / 2 || 0.5;
    low -= room; high += room;
  }
  if (end === begin) { begin -= 1; end += 1; }
  const room = 0.05 * (high - low);
  low -= room; high += room;
  const x = value => left + (value - begin) / (end - begin) * (width - left - right);
  const y = value => height - bottom - (value - low) / (high - low) * (height - top - bottom);
  const svg = chart.svg;
  svg.replaceChildren();
  const grid = draw(svg, 'g', {class: 'grid'}), texts = draw(svg, 'g', {class: 'ticks'});
  for (const value of ticks(low, high, 5)) {
    draw(grid, 'line', {x1: left, x2: width - right, y1: y(value), y2: y(value)});
    draw(texts, 'text', {x: left - 6, y: y(value) + 4, 'text-anchor': 'end'}, short(value));
  }
  for (const value of ticks(begin, end, 5)) {
    draw(texts, 'text', {x: x(value), y: height - bottom + 18,
      'text-anchor': x(value) > width - 40 ? 'end' : 'middle'}, short(value));
  }
  draw(svg, 'text', {class: 'axis', x: width - right, y: height - 6, 'text-anchor': 'end'}, 'updates');
  for (const line of lines) {
    let path = '', pen = 'M';
    line.y.forEach((value, i) => {
      if (value == null) return;  // a key that only some lines have is drawn through
      path += `${pen}${x(line.x[i]).toFixed(1)} ${y(value).toFixed(1)}`;
      pen = 'L';
    });
    const group = draw(svg, 'g', {class: 'series dense ' + line.run.colour});
    draw(group, 'path', {d: path, 'data-run': line.run.facts.id});
    if (line.x.length <= 20) {  // a single point is no line
      line.x.forEach((at, i) => line.y[i] == null ||
        draw(group, 'circle', {class: 'dot', cx: x(at), cy: y(line.y[i]), r: 3.5}));
    }
  }
  const cursor = draw(svg, 'line', {class: 'cursor', y1: top, y2: height - bottom, visibility: 'hidden'});
  const read = update => {
    chart.read.replaceChildren(...lines.map(line => {
      let best = line.x.length - 1;
      if (update != null) line.x.forEach((at, i) => {
        if (line.y[i] != null && Math.abs(at - update) < Math.abs(line.x[best] - update)) best = i;
      });
      while (best > 0 && line.y[best] == null) --best;
      const name = make('i', {}, line.run.facts.name + line.set);
      return make('span', {class: line.run.colour}, name, ' ' + short(line.y[best]));
    }));
  };
  read(null);
  svg.onpointermove = event => {
    const box = svg.getBoundingClientRect();
    const at = Math.min(Math.max((event.clientX - box.left) / box.width * width, left), width - right);
    cursor.setAttribute('x1', at); cursor.setAttribute('x2', at);
    cursor.setAttribute('visibility', 'visible');
    read(begin + (at - left) / (width - left - right) * (end - begin));
  };
  svg.onpointerleave = () => { cursor.setAttribute('visibility', 'hidden'); read(null); };
}

async function makeCharts() {
  charts = await get('/data/charts');
  for (const chart of charts) {
    chart.svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    for (const [name, value] of Object.entries({viewBox: '0 0 460 250', class: 'chart', role: 'img',
      'aria-label': chart.title})) chart.svg.setAttribute(name, value);
    chart.read = make('p', {class: 'read'});
    chart.figure = make('figure', {'data-key': chart.key},
      make('h3', {}, chart.title.toLowerCase() === chart.label ? chart.title :
        chart.title + ', ' + chart.label), chart.svg, chart.read,
      make('figcaption', {}, chart.caption));
    chart.figure.hidden = true;
    byId('charts').append(chart.figure);
  }
}

async function showCurves() {
  await Promise.all([...runs].filter(([, run]) => run.shown && run.stamp !== run.facts.stamp)
    .map(async ([id, run]) => {
      const stamp = run.facts.stamp;
      try {
        run.curves = await get('/data/curves?run=' + id);
        run.stamp = stamp;
      } catch (error) {
        if (!run.facts.error) throw error;  // said in its row
        run.curves = null;
      }
    }));
  const shown = [...runs.values()].filter(run => run.shown && run.curves);
  for (const chart of charts) drawChart(chart, shown);
}

const thumbnail = (picture, look) =>
  make('img', {src: picture.src, alt: picture.text, title: picture.text, class: look, loading: 'lazy'});

function sheetOf(sheet) {
  const pictures = sheet.pictures.map(picture => make('span', {}, thumbnail(picture, ''),
    ...(picture.beside ? [thumbnail(picture.beside, 'beside')] : []),
    ...(picture.row ?? []).map(other => thumbnail(other, 'beside'))));
  return make('div', {'data-sheet': sheet.title}, make('h3', {}, sheet.title),
    make('p', {}, sheet.caption), make('div', {class: 'sheet'}, ...pictures));
}

function mapOf(points) {
  const field = make('div', {class: 'map'});
  for (const point of points) {
    const image = thumbnail(point, '');
    image.style.left = 94 * point.x + '%';
    image.style.top = 90 * point.y + '%';
    field.append(image);
  }
  return make('div', {'data-sheet': 'Map'}, make('h3', {}, 'Map'), make('p', {},
    'Features by their first two principal components: what lies together looks alike to the network.'),
    field);
}

const pictures = {of: null, arrived: '', kept: '', nodes: {}};
async function showPictures() {
  const id = byId('of').value, run = runs.get(id);
  if (!run) return byId('sheets').replaceChildren();
  if (pictures.of !== id) Object.assign(pictures, {of: id, arrived: '', kept: '', nodes: {}});
  const refresh = async (part, stamp, path) => {
    if (pictures[part] === stamp) return;
    let nodes;
    try {
      const answer = await get(path + id);
      nodes = (answer.sheets ?? [answer]).filter(sheet => sheet.pictures.length > 0).map(sheetOf);
      if (answer.map?.length > 0) nodes.push(mapOf(answer.map));
      pictures[part] = answer.checkpoint ?? stamp;
    } catch (error) {
      nodes = [make('p', {}, error.message)];
    }
    if (pictures.of === id) pictures.nodes[part] = nodes;
  };
  const used = run.facts.status ? run.facts.status.used : 0;
  await refresh('arrived', 'at ' + used, '/data/arrived?run=');
  if (run.facts.checkpoint) await refresh('kept', run.facts.checkpoint, '/data/kept?run=');
  byId('sheets').replaceChildren(...(pictures.nodes.arrived ?? []), ...(pictures.nodes.kept ?? []));
}

let busy = false;
async function tick() {
  if (busy || document.hidden) return;
  busy = true;
  try {
    const [answer] = await Promise.all([get('/data/runs'), charts.length === 0 && makeCharts()]);
    showRuns(answer);
    await showCurves();
    await showPictures();
    byId('message').hidden = true;
  } catch (error) {
    byId('message').textContent = error instanceof TypeError || error.name === 'TimeoutError' ?
      'riffle watch does not answer; this is what it said last.' : error.message;
    byId('message').hidden = false;
  }
  busy = false;
}
byId('of').addEventListener('change', () => { chosen = true; tick(); });
document.addEventListener('visibilitychange', tick);
setInterval(tick, kEvery);
tick();
)js";
}

}  // namespace riffle
