/** The view of the whole fleet. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { h } from "preact";
import { call, may } from "../page/api.js";
import { className, count, counted, percent } from "../page/format.js";
import { Link, place, setQuery } from "../page/router.js";
import { listen } from "../page/stream.js";
import { Choice, Head, Problem, Select } from "../parts/elements.js";
import { Input } from "../parts/fields.js";
import { paletteOf } from "./colours.js";
import { allNames, changes, fleet as data, follow, hostOf, load, nameOf, problem } from "./fleet_data.js";
import { DISABLED, DOWN, DRAINING, NONE, OVER } from "./fleet_file.js";
import { GROUPINGS, groupHosts, summarise } from "./groups.js";
import { FleetMap, useIsDark } from "./map.js";
import { SelectionBar } from "./selection.js";
import { Figures, Groups, Side } from "./side.js";

/** @typedef {import("./fleet_file.js").Fleet} Fleet */

const LARGE = 20_000; // hosts from which the side panel folds away
const NEWS_MAX = 10;

export function FleetView() {
  useEffect(follow, []);
  const fleet = data.value;
  const error = problem.value;
  if (!fleet)
    return h(
      "div",
      {},
      h(Head, { title: "Fleet" }),
      error
        ? h(Problem, { error, again: () => void load() })
        : h("div", { class: "empty", role: "status" }, h("div", { class: "progress" }), "Loading the fleet …"),
    );
  if (!fleet.hosts) return h("div", {}, h(Head, { title: "Fleet", second: "No hosts yet" }), h(NoHosts, {}));
  return h(Whole, { fleet });
}

function NoHosts() {
  return h(
    "div",
    { class: "card empty" },
    "No host has registered. Start an agent with ",
    h("code", {}, "roost agent"),
    ", or import a fleet with ",
    h("code", {}, "roost import"),
    ".",
  );
}

/** @param {{fleet: Fleet}} props */
function Whole({ fleet }) {
  const query = place.value.query;
  const colour = query.get("colour") ?? fleet.classes[0] ?? "state";
  const by = query.get("group") ?? "zone";
  const [text, setText] = useState("");
  const [state, setState] = useState(0);
  const [isSelecting, setSelecting] = useState(false);
  const [selection, setSelection] = useState(/** @type {Set<number>} */ (new Set()));
  const news = useNews();
  const turn = useTurn(fleet);
  const groups = useMemo(() => groupHosts(fleet, by, nameOf), [fleet, by]);
  const column = Math.max(0, fleet.classes.indexOf(colour));
  const summary = useMemo(() => summarise(fleet, groups, column), [fleet, groups, column, turn]);
  const labels = useMemo(
    () => summary.map((each) => `${counted(each.hosts, "host")}${each.mean === null ? "" : `, ${percent(each.mean)}`}`),
    [summary],
  );
  const hits = useMemo(() => findHits(fleet, text, state), [fleet, text, state, turn]);
  const pinned = hostOf(query.get("host") ?? "") ?? -1;
  const isLarge = fleet.hosts > LARGE;
  const pin = (/** @type {number} */ host) => setQuery({ host: host < 0 ? null : nameOf(host) });
  const map = h(
    "section",
    { class: "card map-card" },
    h(Tools, { fleet, colour, by, text, setText, hits, isSelecting, setSelecting }),
    selection.size ? h(SelectionBar, { hosts: [...selection], onEnd: () => setSelection(new Set()) }) : null,
    h(FleetMap, {
      fleet,
      colour,
      groups,
      labels,
      nameOf,
      hits,
      pinned,
      onPin: pin,
      selection,
      isSelecting,
      onSelect: setSelection,
      flashes: news.flashes,
    }),
    h(Legend, { fleet, colour, turn, state, setState }),
  );
  return h(
    "div",
    {},
    h(Head, {
      title: "Fleet",
      second: subtitle(fleet, turn),
      acts: [
        h(Link, { key: "hosts", class: "button", to: "/hosts" }, "List of hosts"),
        h(Link, { key: "more", class: "button primary", to: "/capacity" }, "How many more fit?"),
      ],
    }),
    h(Figures, { isLarge }),
    h(
      "div",
      { class: isLarge && pinned < 0 ? "" : "columns" },
      map,
      isLarge && pinned < 0 ? null : h(Side, { fleet, column, turn, pinned, news: news.list }),
    ),
    h(Groups, { summary, colour, by }),
  );
}

/** A number that changes with the fleet, once a second at most: sums over all hosts take some milliseconds. @param {Fleet} fleet */
function useTurn(fleet) {
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let timer = 0;
    const end = changes.subscribe(() => {
      timer ||= setTimeout(() => {
        timer = 0;
        setTurn((before) => before + 1);
      }, 1000);
    });
    return () => {
      clearTimeout(timer);
      end();
    };
  }, [fleet]);
  return turn;
}

/** The newest decisions, and the hosts to light up. */
function useNews() {
  const [state, setState] = useState(
    /** @type {{list: any[], flashes: {hosts: number[]} | null}} */ ({ list: [], flashes: null }),
  );
  useEffect(() => {
    const recent = call("GET", "/decisions", { query: { limit: NEWS_MAX } }).catch(() => ({ decisions: [] }));
    void recent.then(({ decisions }) =>
      setState((before) => (before.list.length ? before : { ...before, list: decisions.map(oldNews) })),
    );
    return listen(({ type, data: event }) => {
      if (type !== "scheduler.select_destinations.end" || !event.payload.decision_uuid) return;
      const { payload, time_s: time } = event;
      const hosts = payload.placed
        .map((/** @type {any} */ each) => hostOf(each.node))
        .filter((/** @type {any} */ each) => each !== undefined);
      const item = {
        uuid: payload.decision_uuid,
        outcome: payload.outcome,
        text: payload.reason || `${payload.flavor || "request"} → ${payload.placed[0]?.host ?? ""}`,
        time,
      };
      setState((before) => ({
        list: [item, ...before.list].slice(0, NEWS_MAX),
        flashes: hosts.length ? { hosts } : before.flashes,
      }));
    });
  }, []);
  return state;
}

/** @param {any} decision */
const oldNews = (decision) => ({
  uuid: decision.uuid,
  outcome: decision.outcome,
  text: decision.reason || `→ ${decision.picks[0]?.host ?? ""}`,
  time: decision.decided_at_s,
});

/** Return the hosts that a text or a state names; null: no search. @param {Fleet} fleet @param {string} text @param {number} state */
function findHits(fleet, text, state) {
  if (!text && !state) return null;
  const wanted = text.toLowerCase();
  const found = new Set(/** @type {number[]} */ ([]));
  allNames().forEach((name, host) => {
    if ((!wanted || name.toLowerCase().includes(wanted)) && (!state || (fleet.states[host] ?? 0) & state))
      found.add(host);
  });
  return found;
}

/** @param {Fleet} fleet @param {number} _turn */
function subtitle(fleet, _turn) {
  let down = 0;
  let instances = 0;
  for (let host = 0; host < fleet.hosts; host += 1) {
    if ((fleet.states[host] ?? 0) & DOWN) down += 1;
    instances += fleet.instances[host] ?? 0;
  }
  const zones = new Set(fleet.places.map((each) => each.zone)).size;
  return [
    counted(fleet.hosts, "host"),
    counted(zones, "zone"),
    down ? `${count(down)} down` : "all up",
    counted(instances, "instance"),
  ].join(" · ");
}

/** @param {{fleet: Fleet, colour: string, by: string, text: string, setText: (text: string) => void, hits: Set<number> | null, isSelecting: boolean, setSelecting: (on: boolean) => void}} props */
function Tools({ fleet, colour, by, text, setText, hits, isSelecting, setSelecting }) {
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => {
    const focus = (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "/" || /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? "")) return;
      event.preventDefault();
      input.current?.focus();
    };
    addEventListener("keydown", focus);
    return () => removeEventListener("keydown", focus);
  }, []);
  const options = [
    ...fleet.classes.map((value) => ({ value, name: className(value) })),
    { value: "state", name: "State" },
    { value: "age", name: "Last report" },
  ];
  const open = (/** @type {KeyboardEvent} */ event) => {
    const [only] = hits ?? [];
    if (event.key === "Enter" && only !== undefined) setQuery({ host: nameOf(only) });
    if (event.key === "Escape") setText("");
  };
  return h(
    "div",
    { class: "map-tools bar-of-tools" },
    options.length <= 6
      ? h(Choice, { label: "Colour by", value: colour, options, onChoose: (value) => setQuery({ colour: value }) })
      : h(Select, { label: "Colour by", value: colour, options, onChoose: (value) => setQuery({ colour: value }) }),
    h(Select, {
      label: "Group by",
      value: by,
      options: GROUPINGS.map((each) => ({ ...each, name: `Group by ${each.name}` })),
      onChoose: (value) => setQuery({ group: value }),
    }),
    h(Input, {
      ref: input,
      type: "search",
      placeholder: "Find a host  /",
      "aria-label": "Find a host by name",
      value: text,
      onText: setText,
      onKeyDown: open,
    }),
    hits ? h("span", { class: "second", role: "status" }, `${counted(hits.size, "host")} found`) : null,
    may("services:update") || may("hosts:drain") || may("aggregates:hosts:update")
      ? h(
          "button",
          {
            class: "button",
            type: "button",
            "aria-pressed": isSelecting ? "true" : "false",
            onClick: () => setSelecting(!isSelecting),
          },
          isSelecting ? "End selecting" : "Select hosts",
        )
      : null,
  );
}

/** @param {{fleet: Fleet, colour: string, turn: number, state: number, setState: (state: number) => void}} props */
function Legend({ fleet, colour, state, setState }) {
  const isDark = useIsDark();
  const { scale } = paletteOf(isDark);
  const counts = { none: 0, disabled: 0, draining: 0, down: 0, over: 0 };
  const column = fleet.classes.indexOf(colour);
  for (let host = 0; host < fleet.hosts; host += 1) {
    const bits = fleet.states[host] ?? 0;
    if (bits & DISABLED) counts.disabled += 1;
    if (bits & DRAINING) counts.draining += 1;
    if (bits & DOWN) counts.down += 1;
    if (bits & OVER) counts.over += 1;
    if (column >= 0 && fleet.shares[column]?.[host] === NONE) counts.none += 1;
  }
  const chip = (
    /** @type {string} */ name,
    /** @type {number} */ bit,
    /** @type {string} */ title,
    /** @type {number} */ number,
  ) =>
    h(
      "button",
      {
        key: name,
        class: "button plain",
        type: "button",
        "aria-pressed": state === bit ? "true" : "false",
        onClick: () => setState(state === bit ? 0 : bit),
      },
      h("span", { class: `swatch ${name}` }),
      `${title} ${count(number)}`,
    );
  const ends = colour === "age" ? ["just now", "an hour ago"] : ["0%", "100% used"];
  return h(
    "div",
    { class: "legend" },
    colour === "state"
      ? null
      : [
          ends[0],
          h("span", { class: "legend-scale", style: { background: `linear-gradient(90deg, ${scale.join(", ")})` } }),
          ends[1],
        ],
    column >= 0 ? h("span", {}, h("span", { class: "swatch none" }), `has none ${count(counts.none)}`) : null,
    chip("disabled", DISABLED, "disabled", counts.disabled),
    chip("down", DOWN, "down", counts.down),
    counts.over ? chip("over", OVER, "over capacity", counts.over) : null,
  );
}
