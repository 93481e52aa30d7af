// Throughput and health: how fast pulls are made, what fails, and which agents are slow or away.

import { $, fill, fillFacts, make, setText } from "./parts.js";
import { clock, duration, money, percent, significant, whole } from "./format.js";
import { drawLine } from "./drawing.js";

const AGENTS = 200, ROWS = 60;
const AGENT_STATES = ["lost", "away", "late", "working", "idle"]; // in the order of the table
const UNREACHABLE = ["lost", "away"];
let shownAgents = [];

export function drawHealth(state) {
  const { health, progress, money: cost, status } = state;
  const running = status.status === "running", elapsed = progress.latest - progress.started;
  const attempts = health.attempts_failed ? progress.pulls + health.attempts_failed - progress.failed : 0; // a last attempt that failed is a failed pull
  const pace = elapsed > 0 ? progress.pulls / elapsed : null;
  fillFacts("health-facts", [
    [running ? "pulls per second, last minute" : "pulls per second, at the end", health.per_second === null ? null : significant(health.per_second)],
    ["pulls per second, over all", pace === null ? null : significant(pace)],
    ["seconds per call: median, 90%, 99%", health.latency && health.latency.map(significant).join(", ")],
    ["cost per minute", health.cost_per_minute !== null ? money(health.cost_per_minute) : cost && elapsed > 0 ? money((60 * cost.spent) / elapsed) : null],
    ["waited for rate limits, all calls together", health.waited ? (health.waited < 60 ? `${significant(health.waited)} s` : duration(health.waited)) : null],
    ["failed attempts", attempts ? `${whole(health.attempts_failed)} of ${whole(attempts)} (${percent(health.attempts_failed / attempts)})` : null],
    ["by kind", health.errors.map(([kind, count]) => `${kind} ${whole(count)} (${percent(count / attempts)})`).join(", ")],
    ["retries", health.retries ? whole(health.retries) : null],
    ["failed for good", progress.pulls ? `${whole(progress.failed)} (${percent(progress.failed / progress.pulls)})` : null],
  ]);
  const rates = paceOf(health.points);
  $("pace-chart").hidden = rates.length < 2;
  if (rates.length >= 2) drawLine($("pace-chart"), rates.map(({ at, rate }) => [at, rate]), { x: clock, y: "pulls per second", zero: true });
  fill("pace-table", rates.slice(-ROWS).reverse().map(({ at, pulls, cost: spent, rate }) => ({ cells: [clock(at), whole(pulls), significant(rate), spent ? money(spent) : "–"] })));
}

function paceOf(points) {
  const rates = [];
  for (let index = 1; index < points.length; index += 1) {
    const [[before, pullsBefore], [at, pulls, cost]] = [points[index - 1], points[index]];
    if (at > before) rates.push({ at, pulls, cost, rate: (pulls - pullsBefore) / (at - before) });
  }
  return rates;
}

// The numbers of agents in these states, as text.
function agentCounts(state, names) {
  const count = (name) => state.agents.state.filter((other) => other === name).length;
  return names.filter(count).map((name) => `${whole(count(name))} ${name}`).join(", ");
}

export function unreachable(state) {
  return state.agents ? agentCounts(state, UNREACHABLE) : undefined;
}

export function drawAgents(state, now) {
  const { agents, head } = state;
  const rank = (agent) => AGENT_STATES.indexOf(agents.state[agent]);
  const order = agents.state.map((_, agent) => agent).sort((a, b) => rank(a) - rank(b) || a - b);
  const missing = order.filter((agent) => rank(agent) < 3).slice(0, 10).map((agent) => `${name(head, agent)} ${agents.state[agent]}`).join("; ");
  setText("agents-text", `Agents: ${agentCounts(state, AGENT_STATES)}${missing ? ` (agent ${missing})` : ""}${order.length > AGENTS ? `; the first ${AGENTS} are listed` : ""}`);
  $("agents-text").className = missing ? "note" : "";
  shownAgents = order.slice(0, AGENTS);
  fill("agents", shownAgents.map((agent) => {
    const bar = make("span", "bar"), inner = make("i"); bar.ariaHidden = "true";
    inner.style.width = `${Math.min(100, (agents.pulls[agent] / head.horizon) * 100)}%`; bar.append(inner);
    return { cells: [name(head, agent), agents.state[agent], whole(agents.pulls[agent]), bar, heard(state, agent, now)], classNames: { 1: agents.state[agent] } };
  }));
}

const name = (head, agent) => (head.sites.length ? `${agent}, ${head.sites[agent]}` : String(agent));

function heard(state, agent, now) {
  const time = state.agents.heard[agent];
  if (time === null) return "–";
  return now - time < 2 ? "just now" : `${duration(now - time)} ago`;
}

export function tickAgents(state, now) {
  document.querySelectorAll("#agents tbody tr").forEach((row, index) => { row.lastChild.textContent = heard(state, shownAgents[index], now); });
}
