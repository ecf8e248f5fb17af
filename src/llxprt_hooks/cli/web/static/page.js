// The inspector's page. Everything that comes from hooks is set as text, never as HTML.
"use strict";

const DECISIONS = ["blocked", "stopped", "asked", "failed", "changed", "allowed"];
const FACETS = ["project", "session", "caller", "event", "tool", "hook"];
const ANSWERED = { approved: "allowed", denied: "blocked" };
const ROW = 58;
const PAGE = 300;
const SLOW = 500;
const ABANDONED = 600000;

const $ = (id) => document.getElementById(id);
const state = {
  where: {}, events: [], byId: new Map(), total: 0, selected: null, loading: false, generation: 0,
  unseen: 0, overview: null, stream: null, hooksShown: false, fireOpen: false,
};

// Elements.

function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (name === "on") for (const [event, run] of Object.entries(value)) element.addEventListener(event, run);
    else if (name in element && name !== "list") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function milliseconds(value) {
  if (value === null || value === undefined) return "";
  if (value >= 10000) return `${(value / 1000).toFixed(1)} s`;
  if (value >= 1000) return `${(value / 1000).toFixed(2)} s`;
  return value >= 10 ? `${Math.round(value)} ms` : `${value.toFixed(1)} ms`;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

function time(timestamp) {
  const date = new Date(timestamp);
  if (Number.isNaN(date.getTime())) return String(timestamp);
  const today = date.toDateString() === new Date().toDateString();
  return today ? clock.format(date) : `${day.format(date)}, ${clock.format(date)}`;
}

const count = (number) => number.toLocaleString();
const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;
const pretty = (value) => JSON.stringify(value, null, 2);
const lastPart = (path) => path.replace(/\/+$/, "").split("/").pop() || path;
// Names that programs choose often differ at their end only.
const shortSession = (id) => /^[\da-f]{8}-[\da-f-]{27}$/i.test(id) ? `${id.slice(0, 8)}…` : id.length > 13 ? `…${id.slice(-12)}` : id;
const capital = (word) => word.charAt(0).toUpperCase() + word.slice(1);
const badge = (decision, word = decision) => h("span", { className: `badge ${decision}` }, capital(word));

// Requests.

function query(more) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...state.where, ...more })) if (value) parameters.set(name, value);
  return parameters.toString();
}

async function ask(path, options) {
  const response = await fetch(path, { credentials: "same-origin", ...options });
  if (response.status === 403) {
    status("off", "Not allowed");
    throw new Error(await response.text());
  }
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error || response.statusText);
  return answer;
}

function status(kind, words) {
  $("live").className = kind === "on" ? "pill on" : "pill";
  $("live").querySelector("b").textContent = words;
}

// Loading. The stream is opened first: an event that arrives while the list is loaded is in both, and kept once.

async function reload() {
  const generation = ++state.generation;
  Object.assign(state, { events: [], byId: new Map(), total: 0, unseen: 0, loading: false });
  history.replaceState(null, "", query() ? `/?${query()}` : "/");
  connect();
  showFilters();
  await Promise.all([more(generation), overview()]);
}

async function more(generation = state.generation) {
  if (state.loading) return;
  state.loading = true;
  try {
    const last = state.events.at(-1);
    const page = await ask(`/api/events?${query({ limit: PAGE, before: last ? last.number : "" })}`);
    if (generation !== state.generation) return;
    state.total = page.total;
    take(page.events);
    if (!last) $("list").scrollTop = 0;
  } finally {
    if (generation === state.generation) state.loading = false;
  }
  draw();
}

let retry = 500;

function connect() {
  if (state.stream) state.stream.close();
  const stream = (state.stream = new EventSource(`/api/stream?${query()}`));
  stream.onopen = () => { status("on", "Live"); retry = 500; };
  stream.onmessage = (message) => arrived(JSON.parse(message.data));
  stream.addEventListener("questions", (message) => showQuestions(JSON.parse(message.data)));
  stream.onerror = () => {
    if (stream !== state.stream) return;
    status("off", "Reconnecting");
    stream.close();
    setTimeout(() => stream === state.stream && reload().catch(() => connect()), retry);
    retry = Math.min(retry * 2, 10000);
  };
}

// Questions of agents. A click that was meant for another question must not answer one that has just moved here.

const SETTLED = 600;
const QUESTION = { waiting: new Map(), changed: 0, timer: null };

function showQuestions(questions) {
  const known = QUESTION.waiting;
  QUESTION.waiting = new Map(questions.map((each) => [each.id, known.get(each.id) || questionCard(each)]));
  QUESTION.changed = Date.now();
  $("questions").replaceChildren(...QUESTION.waiting.values());
  $("questions").hidden = !questions.length;
  document.title = questions.length ? `(${questions.length}) Hook inspector` : "Hook inspector";
  clearInterval(QUESTION.timer);
  if (questions.length) QUESTION.timer = setInterval(countDown, 1000);
  countDown();
}

function questionCard(asked) {
  const button = (word, className, text) => h("button", { className, on: { click: () => answer(word) } }, text);
  const error = h("p", { className: "error", hidden: true });
  const answers = h("div", { className: "answers" },
    button("no", "deny", "Deny"), button("once", "primary", "Allow once"), button("session", "quiet", "Allow for this session"));
  async function answer(word) {
    if (Date.now() - QUESTION.changed < SETTLED) return;
    for (const each of answers.children) each.disabled = true;
    try {
      await ask("/api/answer", {
        method: "POST", headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ id: asked.id, digest: asked.digest, answer: word }),
      });
      toast(word === "no" ? `${asked.tool_name} is denied` : `${asked.tool_name} is allowed`);
    } catch (problem) {
      for (const each of answers.children) each.disabled = false;
      error.hidden = false;
      error.textContent = problem.message;
    }
  }
  const where = [asked.project, asked.pid && `process ${asked.pid}`, asked.session_id && `session ${asked.session_id}`];
  const card = h("article", { className: "question" },
    h("header", {}, h("h2", {}, `Allow ${asked.tool_name}?`), h("time", {})),
    h("p", { className: "reason" }, `${asked.hook} asks: ${asked.reason}`),
    asked.arguments.length
      ? h("dl", {}, asked.arguments.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, h("pre", { tabIndex: 0 }, value))]))
      : h("p", { className: "note" }, "It has no arguments."),
    h("p", { className: "note" }, where.filter(Boolean).join(", ")), error, answers);
  card.ends = asked.ends;
  return card;
}

function countDown() {
  for (const card of QUESTION.waiting.values()) {
    const left = Math.max(0, Math.round((card.ends - Date.now()) / 1000)), shown = card.querySelector("time");
    shown.textContent = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")} left`;
    shown.className = left < 60 ? "soon" : "";
  }
}

function arrived(changes) {
  const gone = changes.filter((each) => each.gone && state.byId.has(each.id));
  for (const each of gone) state.byId.delete(each.id);
  if (gone.length) state.events = state.events.filter((each) => state.byId.has(each.id));
  const shown = changes.filter((each) => !each.gone);
  const added = take(shown);
  state.total += added - gone.length;
  const list = $("list");
  if (added && list.scrollTop > ROW / 2) {
    list.scrollTop += added * ROW;
    state.unseen += added;
  }
  const current = shown.find((each) => each.id === state.selected);
  if (current && !state.fireOpen) showDetails(current.id);
  draw();
  overviewSoon();
}

/** Put events into the list, newest first; how many are new. */
function take(events) {
  let added = 0;
  for (const event of events) {
    if (state.byId.has(event.id)) {
      state.events[state.events.indexOf(state.byId.get(event.id))] = event;
    } else {
      const newest = state.events[0], oldest = state.events.at(-1);
      if (!newest || event.number > newest.number) state.events.unshift(event);
      else if (event.number < oldest.number) state.events.push(event);
      else state.events.splice(state.events.findIndex((each) => each.number < event.number), 0, event);
      added++;
    }
    state.byId.set(event.id, event);
  }
  return added;
}

let overviewTimer = null, overviewRunning = false;

function overviewSoon() {
  if (overviewTimer === null) overviewTimer = setTimeout(() => { overviewTimer = null; overview(); }, 1000);
}

async function overview() {
  if (overviewRunning) return overviewSoon();
  overviewRunning = true;
  try {
    state.overview = await ask(`/api/overview?${query()}`);
  } catch {
    return;
  } finally {
    overviewRunning = false;
  }
  state.total = state.overview.matching;
  drawOverview();
  draw();
}

// The list: only the rows in sight are in the document.

const rows = new Map();
let drawing = false;

function draw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => { drawing = false; drawRows(); });
}

function drawRows() {
  const list = $("list");
  if (list.scrollTop < ROW / 2) state.unseen = 0;
  $("rows").style.height = `${state.events.length * ROW}px`;
  const first = Math.max(0, Math.floor(list.scrollTop / ROW) - 6);
  const last = Math.min(state.events.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + 6);
  const wanted = new Set();
  for (let at = first; at < last; at++) {
    const event = state.events[at];
    wanted.add(event.id);
    let row = rows.get(event.id);
    if (!row || row.event !== event) {
      const fresh = makeRow(event);
      if (row) row.element.replaceWith(fresh); else $("rows").append(fresh);
      rows.set(event.id, (row = { element: fresh, event }));
    }
    row.element.style.transform = `translateY(${at * ROW}px)`;
    row.element.setAttribute("aria-selected", String(event.id === state.selected));
    row.element.setAttribute("aria-posinset", at + 1);
    row.element.setAttribute("aria-setsize", state.total);
  }
  for (const [id, row] of rows) if (!wanted.has(id)) { row.element.remove(); rows.delete(id); }
  if (state.selected) list.setAttribute("aria-activedescendant", `row-${state.selected}`);
  if (last >= state.events.length - 20 && state.events.length < state.total) more().catch(() => {});
  $("news").hidden = !state.unseen;
  $("news").textContent = `${plural(state.unseen, "new event")} ↑`;
  $("event-count").textContent = state.total ? count(state.total) : "";
  drawEmpty();
}

function makeRow(event) {
  const deciding = event.hooks.filter((each) => each.decision === event.decision);
  const names = deciding.length || event.hooks.length ? (deciding.length ? deciding : event.hooks).map((each) => each.hook).join(", ") : event.names.join(", ");
  const waiting = isRunning(event);
  const failed = event.failed && event.decision !== "failed";
  return h("div", {
    id: `row-${event.id}`, className: `row ${event.decision}`, role: "option", title: event.reason || names,
    on: { click: () => select(event.id, true) },
  },
    h("span", { className: "dot" }),
    h("div", { className: "what" }, h("b", {}, event.event), event.subject && h("code", {}, event.subject),
      failed && h("span", { className: "badge failed" }, "a hook failed"),
      event.answer && h("span", { className: `badge ${ANSWERED[event.answer] || "asked"}` }, capital(event.answer)),
      ...event.hooks.filter((each) => each.observed && each.observed !== "would allow").slice(0, 1)
        .map((each) => h("span", { className: "badge changed" }, each.observed)),
      h("span", { className: "who", title: [...event.callers, event.session && `session ${event.session}`].filter(Boolean).join(", ") },
        event.callers.length > 0 && h("span", {}, event.callers.map((each) => h("i", {}, each.replace(/^[^=]*=/, "")))),
        event.session && h("i", {}, shortSession(event.session)))),
    h("span", { className: event.duration >= SLOW ? "ms slow" : "ms" }, waiting ? "running" : milliseconds(event.duration)),
    h("div", { className: "why" }, h("b", {}, capital(event.word)), event.decision === "failed" ? `: ${event.reason}` : `${names ? ` by ${names}` : ""}${event.reason ? `: ${event.reason}` : ""}`),
    h("time", { dateTime: event.timestamp }, time(event.timestamp)));
}

/** Whether hooks of an event still run. One that was killed with its agent has no end. */
function isRunning(event) {
  return !event.complete && event.planned > event.hooks.length && Date.now() - new Date(event.timestamp) < ABANDONED;
}

function drawEmpty() {
  const known = state.overview;
  const empty = $("empty");
  const none = $("details").querySelector(".none");
  if (none) none.hidden = !state.events.length;
  if (state.events.length || !known || state.loading) { empty.hidden = true; return; }
  const kind = known.total ? "filtered" : known.configured ? "nothing" : "unconfigured";
  empty.hidden = false;
  if (empty.dataset.kind === kind) return;
  empty.dataset.kind = kind;
  empty.replaceChildren(h("div", {}, ...EMPTY[kind](known)));
}

const EMPTY = {
  filtered: () => [
    h("h2", {}, "No event matches"),
    h("p", {}, "There are events in the log, but none with these filters."),
    h("p", {}, h("button", { className: "quiet", on: { click: clearFilters } }, "Clear filters")),
  ],
  nothing: (known) => [
    h("h2", {}, "Waiting for the first event"),
    h("p", {}, `${plural(known.configured, "hook")} configured for ${known.project}. Events appear here as soon as one of them runs.`),
    h("ol", {},
      h("li", {}, "Run the agent in another terminal:", command("llxprt-hooks run")),
      h("li", {}, "Or let your own program write the log:", command("LLXPRT_HOOKS_LOG=1 python my_agent.py")),
      h("li", {}, "To see payloads and fire them again, let them be recorded:", command("llxprt-hooks inspect --record"))),
  ],
  unconfigured: (known) => [
    h("h2", {}, "No hooks yet"),
    h("p", {}, `No hooks are configured for ${known.project}. Three commands bring the first event here:`),
    h("ol", {},
      h("li", {}, "Add a ready-made hook:", command("llxprt-hooks init")),
      h("li", {}, "Review and approve it:", command("llxprt-hooks trust")),
      h("li", {}, "Run the agent:", command("llxprt-hooks run"))),
    h("p", {}, "Is it another project? Start the inspector with -C and its folder."),
  ],
};

function command(text) {
  return h("div", { className: "command" }, h("code", {}, text),
    h("button", { className: "quiet", on: { click: () => copy(text) } }, "Copy"));
}

// Figures.

function drawOverview() {
  const known = state.overview;
  $("recording").hidden = !known.recording;
  for (const name of FACETS) fillSelect(name, known.facets[name]);
  const chips = ["", ...DECISIONS].map((decision) => {
    const number = decision ? known.decisions[decision] || 0 : Object.values(known.decisions).reduce((sum, each) => sum + each, 0);
    const pressed = (state.where.decision || "") === decision;
    if (state.where.decision && !pressed && decision) return chip(decision, null, pressed);
    return chip(decision, state.where.decision && !decision ? null : number, pressed);
  });
  $("decisions").replaceChildren(...chips);
  drawChart(known);
  const findings = known.findings.length;
  $("finding-count").hidden = !findings;
  $("finding-count").textContent = findings;
  if (state.hooksShown) drawHooks(known);
}

function chip(decision, number, pressed) {
  return h("button", {
    className: `chip ${decision}`, "aria-pressed": String(pressed),
    on: { click: () => setFilter("decision", pressed ? "" : decision) },
  }, decision && h("i"), decision ? capital(decision) : "All", number === null ? null : h("span", {}, count(number)));
}

const WIDTHS = { 60: "minute", 300: "5 minutes", 900: "15 minutes", 3600: "hour", 21600: "6 hours", 86400: "day", 604800: "week" };

function drawChart(known) {
  const bins = known.bins, chart = $("chart");
  const most = Math.max(1, ...bins.map((bin) => Object.values(bin).reduce((sum, each) => sum + each, 0)));
  $("chart-title").replaceChildren(
    h("span", {}, bins.length ? `Decisions per ${WIDTHS[known.width] || "interval"}` : ""),
    h("span", {}, bins.length ? `since ${time(new Date(known.start * 1000).toISOString())}, at most ${count(most)}` : ""));
  const columns = Math.max(bins.length, 24);
  chart.setAttribute("viewBox", `0 0 ${columns * 10} 100`);
  chart.replaceChildren(...bins.flatMap((bin, at) => {
    let top = 100;
    return DECISIONS.filter((decision) => bin[decision]).reverse().map((decision) => {
      const height = Math.max((bin[decision] / most) * 96, 3);
      top -= height;
      const x = (columns - bins.length + at) * 10 + 1;
      const title = svg("title");
      title.textContent = `${time(new Date((known.start + at * known.width) * 1000).toISOString())}: ${count(bin[decision])} ${decision}`;
      return svg("rect", { class: decision, x, y: Math.max(top, 0), width: 8, height }, title);
    });
  }));
}

function drawHooks(known) {
  const findings = known.findings.map((each) =>
    h("div", { className: `finding ${each.kind === "always fails" ? "blocked" : "failed"}` },
      h("span", { className: "kind" }, capital(each.kind)),
      h("div", {}, h("b", {}, each.hook), " ", h("span", { className: "note" }, each.event)),
      h("p", {}, each.text),
      h("span", { className: "note" }, each.project)));
  $("findings").replaceChildren(...(findings.length ? [h("h2", {}, "Needs attention"), ...findings] : []));
  const hooks = known.hooks.map((hook) => drawHook(hook, known));
  $("hooks").replaceChildren(
    h("h2", {}, hooks.length ? "Hooks by p95, slowest first" : "No hook has run yet"), ...hooks);
}

function drawHook(hook, known) {
  const bad = (number, decision) => number ? [", ", h("span", { className: `bad ${decision}` }, `${count(number)} ${decision}`)] : null;
  const figure = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, milliseconds(value)));
  return h("article", { className: "hook" },
    h("div", {},
      h("h3", {}, h("button", { title: "Show its events", on: { click: () => { state.where = { hook: hook.hook, event: hook.event }; showView(false); reload(); } } }, hook.hook)),
      h("p", { className: "sub" }, `${hook.event}, ${plural(hook.count, "run")}`, bad(hook.blocked, "blocked"), bad(hook.failed, "failed"))),
    h("dl", { className: "numbers" }, figure("p50", hook.p50), figure("p95", hook.p95), figure("max", hook.max)),
    histogram(hook, known.latencies), trend(hook, known));
}

function histogram(hook, latencies) {
  const used = hook.histogram.map((number, at) => (number ? at : -1)).filter((at) => at >= 0);
  const first = Math.max(0, (used[0] ?? 0) - 2), last = Math.min(latencies.length, (used.at(-1) ?? 0) + 2);
  const most = Math.max(1, ...hook.histogram);
  const bars = [];
  for (let at = first; at <= last; at++) {
    const number = hook.histogram[at];
    const height = number ? Math.max((number / most) * 38, 2) : 1;
    const title = svg("title");
    const label = at < latencies.length ? `up to ${milliseconds(latencies[at])}` : `over ${milliseconds(latencies.at(-1))}`;
    title.textContent = `${label}: ${plural(number, "run")}`;
    bars.push(svg("rect", { class: number ? "" : "zero", x: (at - first) * 10 + 1, y: 40 - height, width: 8, height }, title));
  }
  const low = first ? milliseconds(latencies[first - 1]) : "0";
  const high = last < latencies.length ? milliseconds(latencies[last]) : `over ${milliseconds(latencies.at(-1))}`;
  return h("figure", { className: "hist" },
    svg("svg", { viewBox: `0 0 ${(last - first + 1) * 10} 40`, preserveAspectRatio: "none", role: "img", "aria-label": "Latency histogram" }, ...bars),
    h("figcaption", {}, h("span", {}, low), h("span", {}, "duration"), h("span", {}, high)));
}

function trend(hook, known) {
  const most = Math.max(0.001, ...hook.trend.filter(Boolean).map((each) => each[1]));
  const columns = Math.max(1, hook.trend.length - 1);
  const place = (at, value) => [(hook.trend.length > 1 ? 4 + (at / columns) * 232 : 236).toFixed(1), (36 - (value / most) * 32).toFixed(1)];
  const parts = [];
  for (const [which, name] of [[1, "p95"], [0, "p50"]]) {
    const points = hook.trend.map((each, at) => each && place(at, each[which])).filter(Boolean);
    if (!points.length) continue;
    if (points.length > 1) parts.push(svg("path", { class: name, d: "M" + points.map((point) => point.join(" ")).join("L") }));
    parts.push(svg("path", { class: `${name} now`, d: `M${points.at(-1).join(" ")}h0` }));
  }
  return h("figure", { className: "trend" },
    svg("svg", { viewBox: "0 0 240 40", preserveAspectRatio: "none", role: "img", "aria-label": "p50 and p95 over time" }, ...parts),
    h("figcaption", {}, h("span", {}, h("span", { className: "key" }, "p50"), h("span", { className: "key p95" }, "p95")),
      h("span", {}, `per ${WIDTHS[known.width] || "interval"}`)));
}

// Filters.

function fillSelect(name, values) {
  const select = $(`filter-${name}`);
  const chosen = state.where[name] || "";
  const listed = values.filter(([value]) => value);
  if (chosen && !listed.some(([value]) => value === chosen)) listed.unshift([chosen, 0]);
  const label = (value) => name === "project" ? lastPart(value) : name === "session" ? shortSession(value) : value;
  const wanted = JSON.stringify([chosen, listed]);
  if (select.dataset.wanted === wanted || document.activeElement === select) return;
  select.dataset.wanted = wanted;
  select.replaceChildren(h("option", { value: "" }, `All ${name}s`),
    ...listed.map(([value, number]) => h("option", { value, title: value }, `${label(value)} (${count(number)})`)));
  select.value = chosen;
  select.className = chosen ? "set" : "";
}

function showFilters() {
  for (const name of [...FACETS, "slow"]) {
    const select = $(`filter-${name}`);
    const value = state.where[name] || "";
    if (![...select.options].some((option) => option.value === value)) select.append(h("option", { value }, value || `All ${name}s`));
    select.value = value;
    select.className = value ? "set" : "";
  }
  $("filter-failed").checked = state.where.failed === "1";
  if (document.activeElement !== $("search")) $("search").value = state.where.text || "";
  const set = Object.values(state.where).some(Boolean);
  $("active").hidden = !set;
  $("active").replaceChildren(...Object.entries(state.where).filter(([, value]) => value).map(([name, value]) =>
    h("button", { title: "Remove this filter", on: { click: () => dropFilter(name) } }, filterLabel(name, value), h("span", { ariaHidden: "true" }, " ×"))),
    h("button", { id: "clear", className: "all", on: { click: clearFilters } }, "Clear filters"));
  $("filters-button").className = set ? "quiet set" : "quiet";
}

function filterLabel(name, value) {
  if (name === "failed") return "a hook failed";
  if (name === "slow") return `${milliseconds(Number(value))} or more`;
  if (name === "decision") return value;
  return `${name === "caller" ? "asked by" : name}: ${name === "project" ? lastPart(value) : name === "session" ? shortSession(value) : value}`;
}

/** Set a filter, or remove it. The one that was set last is the last. */
function setFilter(name, value) {
  delete state.where[name];
  if (value) state.where[name] = value;
  reload();
}

function dropFilter(name) {
  if (name === "text") $("search").value = "";
  setFilter(name, "");
}

function clearFilters() {
  state.where = {};
  $("search").value = "";
  reload();
}

for (const name of [...FACETS, "slow"]) {
  $(`filter-${name}`).addEventListener("change", (event) => { event.target.blur(); setFilter(name, event.target.value); });
}
$("filter-failed").addEventListener("change", (event) => setFilter("failed", event.target.checked ? "1" : ""));
$("filters-button").addEventListener("click", () => {
  const open = $("filters").classList.toggle("open");
  $("filters-button").setAttribute("aria-expanded", String(open));
});
let typing = null;
$("search").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => setFilter("text", $("search").value.trim()), 180);
});
$("list").addEventListener("scroll", draw, { passive: true });
new ResizeObserver(draw).observe($("list"));
$("news").addEventListener("click", () => { $("list").scrollTop = 0; });

// Details.

function select(id, open) {
  if (state.selected !== id) state.fireOpen = false;
  state.selected = id;
  const at = state.events.findIndex((event) => event.id === id), list = $("list");
  if (at >= 0) {
    const top = at * ROW;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + ROW > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW - list.clientHeight;
  }
  draw();
  if (open) $("details").classList.add("open");
  if (!state.fireOpen) showDetails(id);
}

async function showDetails(id) {
  let details;
  try {
    details = await ask(`/api/event/${encodeURIComponent(id)}`);
  } catch (error) {
    if (id === state.selected) $("details").replaceChildren(backButton(), h("p", { className: "error" }, error.message));
    return;
  }
  if (id !== state.selected || state.fireOpen) return;
  const panel = $("details");
  const same = panel.dataset.id === id;
  const top = same ? panel.scrollTop : 0;
  const open = new Set(same ? [...panel.querySelectorAll("details[open]")].map((each) => each.dataset.key) : []);
  panel.dataset.id = id;
  try {
    panel.replaceChildren(...describe(details));
  } catch (error) { // a record that another program wrote
    panel.replaceChildren(backButton(), h("p", { className: "error" }, `This record cannot be shown: ${error.message}`), h("pre", {}, pretty(details)));
  }
  for (const each of panel.querySelectorAll("details")) if (open.has(each.dataset.key)) each.open = true;
  panel.scrollTop = top;
}

const backButton = () => h("button", { className: "quiet back", on: { click: closeDetails } }, "← All events");

function describe(event) {
  const fact = (name, value, title) => value ? h("span", { title: title || value }, h("b", {}, name), value) : null;
  const sequential = event.ended && event.ended.sequential;
  const order = event.executions.length > 1 ? (sequential ? "one after another" : "in parallel") : "";
  return [
    backButton(),
    h("div", { className: "head" }, h("h2", {}, event.event, event.subject && h("code", {}, event.subject)), badge(event.decision, event.word)),
    h("div", { className: "facts" },
      fact("ended", full.format(new Date(event.timestamp)), event.timestamp), fact("took", milliseconds(event.duration)),
      fact("session", event.session), fact("project", event.project), fact("asked by", event.callers.join(", "))),
    event.reason && h("div", { className: `callout ${event.decision}` }, event.reason),
    isRunning(event) ? "" : h("div", { className: "actions" }, // before its end, neither its input nor its result is known
      h("button", { className: "primary", id: "fire-button", on: { click: () => openFire(event) } }, "Fire again…"),
      h("button", { className: "quiet", on: { click: () => copy(event.fire_command, "The command is copied") } }, "Copy as fire command"),
      h("button", { className: "quiet", on: { click: () => copy(event.hook_test, "Copied: save it as NAME.hooktest.json") } }, "Copy as hook test")),
    h("div", { id: "fire" }),
    h("h3", {}, "Hooks", h("small", {}, order)),
    ...(event.executions.length ? event.executions.map((each, at) => hookCard(each, event, at)) : [h("p", { className: "note" }, isRunning(event) ? `Running: ${event.names.join(", ")}.` : "No hook ran.")]),
    ...(event.answers.length ? [h("h3", {}, "Asked"), ...event.answers.map(answerCard)] : []),
    h("h3", {}, "Merged result"), merged(event),
    h("h3", {}, "Plan", h("small", {}, "with the settings as they are now")), ...plan(event),
    h("h3", {}, "Payload"), payload(event),
  ].filter(Boolean);
}

function decisionOf(record) {
  if (record.blocked) return "blocked";
  if (record.stopped) return "stopped";
  if (record.asked) return "asked";
  if (record.failed) return "failed";
  return record.effects && record.effects.length ? "changed" : "allowed";
}

/** Milliseconds; its name was another before 0.4. */
const took = (record) => record.duration_ms ?? record.duration;

function hookCard(record, event, at) {
  const decision = decisionOf(record);
  const ending = record.signal || (record.exit_code === null || record.exit_code === undefined ? "no exit code" : `exit code ${record.exit_code}`);
  const effects = effectWords(record);
  const would = { blocked: "blocked", stopped: "stopped the agent", asked: "asked a person", changed: "changed something", failed: "failed", allowed: "allowed" };
  const observed = record.observed && `It would have ${would[decisionOf(record.observed)]}${record.observed.reason ? `: ${record.observed.reason}` : "."}`;
  return h("article", { className: `card ${decision}` },
    h("header", {}, h("h4", {}, record.hook),
      record.dialect && record.dialect !== "llxprt" && h("span", { className: "badge dialect", title: "The language that this hook speaks" }, record.dialect),
      record.observed ? h("span", { className: "badge changed" }, "Only observes") : badge(decision, decision === event.decision ? event.word : decision),
      h("span", { className: "end" }, `${ending}, ${milliseconds(took(record))}${record.warm ? ", warm" : ""}`)),
    record.command !== record.hook && h("code", {}, record.command),
    waterfall(record, event),
    record.error && h("p", { className: "error" }, record.error),
    record.reason && record.reason !== event.reason && h("p", { className: "note" }, record.reason),
    effects && h("p", { className: "note" }, effects),
    observed && h("p", { className: "note" }, observed),
    stream("stdout", record.stdout, true), stream("stderr", record.stderr, true),
    record.payload ? folded("stdin", pretty(record.payload), `${at}-stdin`) : null);
}

const EFFECTS = {
  tool_input: "changes the arguments", additionalContext: "adds context", llm_request: "changes the request",
  llm_response: "replaces the model's answer", toolConfig: "restricts the tools", tool_response: "replaces the result",
  clearContext: "clears the conversation",
};

/** What a hook or an event did besides its decision, as a sentence. */
function effectWords(record) {
  const asked = record.asked && !record.blocked ? ["asks a person"] : [];
  const words = [...asked, ...(record.effects || []).map((each) => EFFECTS[each] || `changes ${each}`)];
  return words.length ? `${capital(words.join(", "))}.` : "";
}

function answerCard(record) {
  const denied = record.blocked ? "denied" : record.answer.split(" ")[0];
  return h("article", { className: `card ${ANSWERED[denied] || "asked"}` },
    h("header", {}, h("h4", {}, `${record.hook} asked`), badge(ANSWERED[denied] || "asked", record.answer),
      h("span", { className: "end" }, milliseconds(took(record)))),
    h("p", { className: "note" }, record.refusal ? `${record.reason} (${record.refusal})` : record.reason),
    record.tool_input ? folded("arguments", pretty(record.tool_input), `${record.id}-arguments`) : null);
}

function waterfall(record, event) {
  if (!event.ended || !event.duration || event.executions.length < 2) return null;
  const begin = new Date(event.ended.timestamp) - event.duration;
  const offset = Math.max(0, new Date(record.timestamp) - took(record) - begin);
  const bar = h("i");
  const width = Math.min(100, (took(record) / event.duration) * 100);
  bar.style.left = `${Math.min((offset / event.duration) * 100, 100 - width)}%`;
  bar.style.width = `${width}%`;
  return h("div", { className: "bar", title: `starts after ${milliseconds(offset)}` }, bar);
}

function stream(name, text) {
  if (!text || !text.trim()) return null;
  return h("div", { className: "stream" }, h("span", { className: "label" }, name), h("pre", {}, formatted(text)));
}

function folded(name, text, key) {
  const element = h("details", { className: "stream" }, h("summary", {}, name), h("pre", {}, text));
  element.dataset.key = key;
  return element;
}

function formatted(text) {
  try {
    const value = JSON.parse(text);
    return value && typeof value === "object" ? pretty(value) : text;
  } catch {
    return text;
  }
}

function merged(event) {
  const ended = event.ended;
  if (!ended) return h("p", { className: "note" }, isRunning(event) ? "Its hooks still run." : "The event has no end: its caller was cancelled, or the agent was killed.");
  if (ended.output) return h("pre", {}, pretty(ended.output));
  const effects = effectWords(ended);
  return h("p", {}, badge(event.decision, event.word), " ", h("span", { className: "note" },
    `${effects} ${ended.output_bytes ? "The complete result was too large to record." : "The complete result is recorded together with payloads."}`));
}

function plan(event) {
  if (!event.plan) return [h("p", { className: "note" }, event.plan_problem)];
  const now = event.plan.filter((each) => each.runs).map((each) => each.hook);
  const then = event.ended ? event.ended.hooks : event.executions.map((each) => each.hook);
  const differs = event.ended && JSON.stringify(now) !== JSON.stringify(then);
  return [
    differs && h("p", { className: "callout failed" }, `The settings have changed since, or a program made them. Then these hooks ran: ${then.join(", ") || "none"}.`),
    event.plan.length
      ? h("ol", { className: "plan" }, event.plan.map((each) => h("li", { className: each.runs ? "runs" : "" },
        h("span", {}, each.runs ? "runs" : "skipped"),
        h("div", {}, h("b", {}, each.hook), h("p", {}, `because ${each.why}`), h("p", { className: "place" }, each.where)))))
      : h("p", { className: "note" }, "No hook is configured for this event in the settings files."),
  ].filter(Boolean);
}

function payload(event) {
  if (event.payload) return h("pre", {}, pretty(event.payload));
  if (event.payload_bytes) return h("p", { className: "note" }, `It was too large to record: ${count(event.payload_bytes)} bytes.`);
  return h("p", { className: "note" }, "It was not recorded. It is the data that the agent works on, so it is recorded only while ",
    h("code", {}, "llxprt-hooks inspect --record"), " runs, or with ", h("code", {}, "run --log-payloads"), ".");
}

function closeDetails() {
  $("details").classList.remove("open");
  $("list").focus({ preventScroll: true });
}

function noDetails() {
  state.selected = null;
  state.fireOpen = false;
  delete $("details").dataset.id;
  $("details").classList.remove("open");
  $("details").replaceChildren(h("div", { className: "none" }, h("h2", {}, "No event selected"),
    h("p", {}, "Choose one from the list, or press ", h("kbd", {}, "j"), ".")));
  draw();
}

// Fire again.

function openFire(event) {
  state.fireOpen = true;
  const input = h("textarea", { id: "fire-input", value: pretty(event.input), spellcheck: false, "aria-label": "Input" });
  const error = h("p", { className: "error", hidden: true });
  const run = h("button", { className: "primary", id: "fire-run" }, "Run the hooks");
  const result = h("div", { id: "fire-result" });
  const close = h("button", { className: "quiet", on: { click: () => { state.fireOpen = false; showDetails(event.id); } } }, "Close");
  const reset = h("button", { className: "quiet", on: { click: () => { input.value = pretty(event.input); input.dispatchEvent(new Event("input")); } } }, "Undo edits");
  function check() {
    try {
      const value = JSON.parse(input.value);
      if (!value || typeof value !== "object" || Array.isArray(value)) throw new Error("The input must be a JSON object.");
      input.setAttribute("aria-invalid", "false");
      error.hidden = true;
      run.disabled = false;
      return value;
    } catch (problem) {
      input.setAttribute("aria-invalid", "true");
      error.hidden = false;
      error.textContent = problem.message;
      run.disabled = true;
      return null;
    }
  }
  async function fire() {
    const value = check();
    if (!value) return;
    run.disabled = true;
    run.textContent = "Running…";
    try {
      const fired = await ask("/api/fire", {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ id: event.id, input: value }),
      });
      result.replaceChildren(...fireResult(event, fired));
      result.scrollIntoView({ block: "nearest", behavior: "smooth" });
    } catch (problem) {
      result.replaceChildren(h("p", { className: "error" }, problem.message));
    } finally {
      run.disabled = false;
      run.textContent = "Run the hooks";
    }
  }
  const fit = () => { input.style.height = "auto"; input.style.height = `${Math.min(input.scrollHeight + 4, innerHeight * 0.45)}px`; };
  input.addEventListener("input", () => { check(); fit(); });
  input.addEventListener("keydown", (key) => { if (key.key === "Enter" && (key.ctrlKey || key.metaKey)) fire(); });
  run.addEventListener("click", fire);
  $("fire").replaceChildren(h("section", { className: "fire" },
    h("h3", {}, "Fire again"),
    h("p", { className: "note" }, `Runs the hooks of ${event.project || "the project"} for real, with all that they do. `
      + (event.input_recorded ? "This is the recorded input. Change it as you like." : "The payload was not recorded: this is an example.")),
    input, error, h("div", { className: "actions" }, run, reset, close), result));
  fit();
  input.focus({ preventScroll: true });
  $("fire").scrollIntoView({ block: "nearest" });
}

function fireResult(event, fired) {
  const compared = fired.comparison;
  const ran = fired.results.length;
  const parts = [
    h("div", { className: "verdict" },
      h("span", { className: "note" }, "Recorded"), badge(compared.before.decision), h("span", { className: "arrow" }, "→"),
      h("span", { className: "note" }, "now"), ran ? badge(compared.after.decision) : h("span", { className: "note" }, "nothing"),
      h("p", { id: "fire-verdict" }, !ran ? "No hook ran." : compared.changed.length ? `Different: ${compared.changed.join(", ")}.` : "The same decision."),
      compared.after.reason && h("p", {}, compared.after.reason)),
  ];
  for (const hint of fired.hints) parts.push(h("p", { className: "callout failed" }, hint));
  if (compared.input && compared.input.length) parts.push(h("h4", {}, "Your edits"), diff(compared.input));
  if (compared.merged && compared.merged.length) parts.push(h("h4", {}, "Merged result"), diff(compared.merged));
  for (const hook of compared.hooks) {
    parts.push(h("h4", {}, hook.hook));
    if (hook.status === "same") parts.push(h("p", { className: "same" }, "Same output and exit code."));
    else if (hook.status !== "changed") parts.push(h("p", { className: "same" }, `It ${hook.status}.`));
    for (const change of hook.changes) parts.push(h("p", { className: "note" }, change.what), diff(change.lines));
  }
  const complete = h("details", { className: "stream" }, h("summary", {}, "All output"), ...fired.results.map((each, at) => h("div", {},
    h("h4", {}, `${each.name}: ${each.signal || `exit code ${each.exit_code}`}, ${milliseconds(each.duration_ms)}`),
    h("p", { className: "note" }, fired.meanings[at]), stream("stdout", each.stdout), stream("stderr", each.stderr))));
  parts.push(complete, h("div", { className: "actions" },
    h("button", { className: "quiet", on: { click: () => copy(fired.fire_command, "The command is copied") } }, "Copy as fire command"),
    h("button", { className: "quiet", on: { click: () => copy(fired.hook_test, "Copied: save it as NAME.hooktest.json") } }, "Copy as hook test")));
  return parts.filter(Boolean);
}

function diff(lines) {
  const kinds = { "+": "add", "-": "del", "…": "gap" };
  return h("div", { className: "diff" }, lines.map(([kind, text]) =>
    h("div", { className: kinds[kind] || "" }, kind === "…" ? "…" : `${kind} ${text}`)));
}

// The rest.

let toastTimer = null;

function toast(words) {
  $("toast").textContent = words;
  $("toast").hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { $("toast").hidden = true; }, 2600);
}

async function copy(text, words = "Copied") {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const hidden = h("textarea", { value: text });
    document.body.append(hidden);
    hidden.select();
    const done = document.execCommand("copy");
    hidden.remove();
    if (!done) return toast("The browser does not allow copying");
  }
  toast(words);
}

function showView(hooks) {
  state.hooksShown = hooks;
  $("hooks-view").hidden = !hooks;
  $("events-view").hidden = hooks;
  $("tab-hooks").setAttribute("aria-selected", String(hooks));
  $("tab-events").setAttribute("aria-selected", String(!hooks));
  if (hooks && state.overview) drawHooks(state.overview);
  if (!hooks) draw();
}
$("tab-events").addEventListener("click", () => showView(false));
$("tab-hooks").addEventListener("click", () => showView(true));

function applyTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
}
function switchTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
  const next = now === "dark" ? "light" : "dark";
  applyTheme(next);
  try { localStorage.setItem("theme", next); } catch { /* the choice lasts until the page is closed */ }
}
try { applyTheme(localStorage.getItem("theme")); } catch { /* the system's choice */ }
$("theme").addEventListener("click", switchTheme);
$("help-button").addEventListener("click", () => $("help").showModal());

function move(by) {
  if (state.hooksShown || !state.events.length) return;
  const at = state.events.findIndex((event) => event.id === state.selected);
  const next = at < 0 ? 0 : Math.min(Math.max(at + by, 0), state.events.length - 1);
  select(state.events[next].id, false);
}

const KEYS = {
  j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1),
  Enter: () => { if (state.selected) { $("details").classList.add("open"); $("details").focus({ preventScroll: true }); } },
  "/": () => { $("search").focus(); $("search").select(); },
  "?": () => $("help").showModal(),
  g: () => { $("list").scrollTop = 0; if (state.events.length) select(state.events[0].id, false); },
  f: () => { const button = $("fire-button"); if (button) button.click(); },
  c: () => { const button = document.querySelector("#details .actions .quiet"); if (button) button.click(); },
  t: switchTheme, e: () => showView(false), h: () => showView(true),
};

function escape() {
  const active = document.activeElement;
  if (active && active.matches("input, select")) return active.blur();
  if ($("filters").classList.contains("open")) return $("filters-button").click();
  if (state.hooksShown) return showView(false);
  if (state.fireOpen) { state.fireOpen = false; return showDetails(state.selected); }
  if ($("details").classList.contains("open") && matchMedia("(max-width: 760px)").matches) return closeDetails();
  if (state.selected) return noDetails();
  const last = Object.keys(state.where).at(-1);
  if (last) dropFilter(last);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
  if (event.key === "Escape") return escape();
  if (event.target.matches("input, textarea, select")) return;
  if (event.key === "Enter" && event.target.matches("button, summary, a")) return;
  const run = KEYS[event.key];
  if (run) { event.preventDefault(); run(); }
});

const FILTERS = new Set([...FACETS, "decision", "slow", "failed", "text"]);
for (const [name, value] of new URLSearchParams(location.search)) if (FILTERS.has(name) && value) state.where[name] = value;
noDetails();
reload().catch((error) => toast(error.message));
