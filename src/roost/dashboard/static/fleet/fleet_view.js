/** The view of the whole fleet. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { h } from "preact";
import { call, may } from "../page/api.js";
import { className, count, counted, percent } from "../page/format.js";
import { go, Link, place, setQuery } from "../page/router.js";
import { listen } from "../page/stream.js";
import { Choice, Head, Problem, Select } from "../parts/elements.js";
import { Input } from "../parts/fields.js";
import { allNames, changes, fleet as data, follow, hostOf, load, nameOf, problem } from "./fleet_data.js";
import { DOWN } from "./fleet_file.js";
import { FitTools } from "../room/fit_tools.js";
import { GROUPINGS, groupHosts, summarise } from "./groups.js";
import { Legend } from "./legend.js";
import { FleetMap } from "./map.js";
import { groupText } from "../room/room.js";
import { useRoom, useWish } from "../room/room_data.js";
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
  const fit = useWish(colour === "fit", query.get("flavor") ?? "");
  const { room, error, isLoading } = useRoom(fleet.generation, fit.wish);
  const summary = useMemo(() => summarise(fleet, groups, column, room), [fleet, groups, column, room, turn]);
  const labels = useMemo(() => summary.map(labelOf), [summary]);
  const hits = useMemo(() => findHits(fleet, text, state), [fleet, text, state, turn]);
  const pinned = hostOf(query.get("host") ?? "") ?? -1;
  const isLarge = fleet.hosts > LARGE;
  const pin = (/** @type {number} */ host) => setQuery({ host: host < 0 ? null : nameOf(host) });
  const map = h(
    "section",
    { class: "card map-card" },
    h(Tools, { fleet, colour, by, text, setText, hits, isSelecting, setSelecting }),
    colour === "fit" ? h(FitTools, { fit, isLoading, error }) : null,
    selection.size ? h(SelectionBar, { hosts: [...selection], onEnd: () => setSelection(new Set()) }) : null,
    h(FleetMap, {
      fleet,
      colour,
      room,
      groups,
      labels,
      nameOf,
      hits,
      pinned,
      onPin: pin,
      onOpen: (host) => go(`/hosts/${encodeURIComponent(nameOf(host))}`),
      selection,
      isSelecting,
      onSelect: setSelection,
      flashes: news.flashes,
    }),
    h(Legend, { fleet, colour, turn, room, wish: fit.wish?.name ?? "", state, setState }),
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

/** What the label of a group says besides its name. @param {ReturnType<typeof summarise>[number]} group */
const labelOf = ({ hosts, mean, fits }) =>
  fits !== null ? groupText(hosts, fits) : `${counted(hosts, "host")}${mean === null ? "" : `, ${percent(mean)}`}`;

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
    ...(may("capacity:show") ? [{ value: "fit", name: "How many fit" }] : []),
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
