/** Compare sets of settings on recorded decisions, before one of them is put in force. */
import { useEffect, useRef, useState } from "preact/hooks";
import { h } from "preact";
import { call, may } from "../page/api.js";
import { useLoad } from "../page/load.js";
import { place, setQuery } from "../page/router.js";
import { fleet, follow } from "../fleet/fleet_data.js";
import { Card, Head, Loaded, NoRight, Problem, Select } from "../parts/elements.js";
import { Results } from "./results.js";
import { SetEditor } from "./set_editor.js";
import { fileOf, firstSets, fromLink, nextSet, problemOf, SETS_MAX, toLink } from "./sets.js";

const HOSTS_MAX = 20_000; // hosts of which the shares are loaded, too
const COUNTS = ["50", "200", "500", "1000"];

export function PoliciesView() {
  useEffect(follow, []);
  if (!may("comparisons:create"))
    return h("div", {}, h(Head, { title: "Policies" }), h(NoRight, { to: "compare settings" }));
  return h(Sets, {});
}

function Sets() {
  const { query } = place.value;
  const [start] = useState(() => fromLink(query.get("sets")));
  const [sets, setSets] = useState(start ?? firstSets());
  const [removals, setRemovals] = useState(0);
  const [newest, setNewest] = useState(
    COUNTS.includes(query.get("newest") ?? "") ? String(query.get("newest")) : "200",
  );
  const { comparison, error, isBusy, run } = useComparison();
  const settings = useLoad(
    (signal) =>
      may("settings:show") ? call("GET", "/settings", { signal }) : Promise.resolve({ settings: [], rules: [] }),
    [],
  );
  const compare = () => {
    setQuery({ sets: toLink(sets), newest });
    run(sets, newest);
  };
  useEffect(() => {
    if (start) run(start, newest);
  }, []);
  const remove = (/** @type {number} */ at) => {
    setSets(sets.filter((_, other) => other !== at));
    setRemovals(removals + 1);
  };
  const problem = problemOf(sets);
  return h(
    "div",
    {},
    h(Head, {
      title: "Policies",
      second: "Decide recorded requests again under other settings. Nothing is claimed, and nothing changes.",
    }),
    h(Loaded, {
      of: settings,
      children: (known) =>
        h(
          "div",
          { class: "stack" },
          h(
            "div",
            { class: "sets" },
            sets.map((set, at) =>
              h(SetEditor, {
                key: `${removals} ${at}`, // an editor has the text of its set, so a removal needs new editors
                set,
                at,
                rules: known.rules,
                settings: known.settings,
                onChange: (changed) => setSets(sets.map((each, other) => (other === at ? changed : each))),
                onRemove: sets.length > 2 ? () => remove(at) : null,
              }),
            ),
          ),
          h(
            "div",
            { class: "bar-of-tools" },
            h(
              "label",
              { class: "bar-of-tools" },
              "Newest decisions",
              h(Select, {
                label: "Newest decisions",
                value: newest,
                options: COUNTS.map((each) => ({ value: each, name: Number(each).toLocaleString("en-US") })),
                onChoose: setNewest,
              }),
            ),
            h(
              "button",
              { class: "button primary", type: "button", disabled: isBusy || Boolean(problem), onClick: compare },
              isBusy ? "Comparing …" : "Compare",
            ),
            sets.length < SETS_MAX
              ? h(
                  "button",
                  { class: "button", type: "button", onClick: () => setSets([...sets, nextSet(sets)]) },
                  "Add a set",
                )
              : null,
            problem ? h("span", { class: "second", role: "status" }, problem) : null,
          ),
          isBusy ? h("div", { role: "status" }, h("div", { class: "progress" }), "Deciding again …") : null,
          h(Problem, { error }),
          comparison ? h(Results, { comparison }) : null,
          h(Traces, { sets }),
        ),
    }),
  );
}

/** The latest comparison; a new one ends an older one that still runs. */
function useComparison() {
  const [state, setState] = useState(
    /** @type {{comparison: any, error: Error | null, isBusy: boolean}} */ ({
      comparison: null,
      error: null,
      isBusy: false,
    }),
  );
  const running = useRef(/** @type {AbortController | null} */ (null));
  useEffect(() => () => running.current?.abort(), []);
  /** @param {import("./sets.js").SettingsSet[]} sets @param {string} newest */
  const run = (sets, newest) => {
    running.current?.abort();
    const stop = (running.current = new AbortController());
    setState((before) => ({ ...before, error: null, isBusy: true }));
    const body = {
      sets: sets.map((each) => ({ name: each.name, settings: each.sections })),
      newest: Number(newest),
      hosts: (fleet.peek()?.hosts ?? 0) <= HOSTS_MAX,
    };
    call("POST", "/comparisons", { body, signal: stop.signal }).then(
      (comparison) => setState({ comparison, error: null, isBusy: false }),
      (error) => stop.signal.aborted || setState((before) => ({ ...before, error, isBusy: false })),
    );
  };
  return { ...state, run };
}

/** Whole traces take minutes: the command line replays them. @param {{sets: import("./sets.js").SettingsSet[]}} props */
function Traces({ sets }) {
  const configs = sets.map((each) => `--config ${fileOf(each.name)}`).join(" ");
  return h(
    Card,
    { title: "On a trace", second: "A whole trace takes minutes or hours, so the command line replays it." },
    h(
      "p",
      {},
      "Download the sets above, and name their files. The replay prints a table, and draws plots and heat maps:",
    ),
    h("pre", { tabIndex: 0 }, h("code", {}, `roost replay TRACE ${configs} --seeds 3 --plot plots`)),
  );
}
