/** Questions to the server: how many more instances of a flavor fit on each host. One at a time, and not often. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { ApiError, call, may, send } from "../page/api.js";
import { useLoad } from "../page/load.js";
import { wishesOf } from "../capacity/counts.js";
import { changes, fleet as data, load } from "../fleet/fleet_data.js";
import { decodeRoom, textOf, wishOf } from "./room.js";

/** @typedef {import("./room.js").Room} Room */
/** @typedef {import("./room.js").Wish} Wish */
/** @typedef {{room: Room | null, error: ApiError | null, isLoading: boolean}} Counted */

const FIRST_MS = 250; // the wish may change again at once
const NEWER_MS = 1000; // while the columns of the page are loaded again
const AGAIN_MS = 10_000;
const SHARE = 10; // a question that takes long is repeated less often
const SMALLEST = { vcpus: 1, memory_mb: 1024, root_gb: 10 };
const NOTHING = /** @type {Counted} */ ({ room: null, error: null, isLoading: false });

/**
 * The wish of the page, and all that there are.
 * @param {boolean} isOn whether the map shows counts
 * @param {string} text of the wish; empty: the first one
 */
export function useWish(isOn, text) {
  const loaded = useLoad(
    (signal) =>
      isOn && may("flavors:list")
        ? call("GET", "/flavors", { query: { requested: true, shapes: true }, signal })
        : Promise.resolve({ flavors: [] }),
    [isOn],
  );
  const wishes = useMemo(() => (loaded.data ? wishesOf(loaded.data) : []), [loaded.data]);
  const isReady = isOn && !loaded.isLoading;
  const chosen = text || (wishes[0]?.name ?? textOf(SMALLEST));
  const wish = useMemo(() => (isReady ? wishOf(chosen, wishes) : undefined), [isReady, chosen, wishes]);
  return { wishes, chosen: isReady ? chosen : text, wish, isUnknown: isReady && !wish, error: loaded.error };
}

/**
 * How many more instances of a wish fit on each host; counted again after changes of the fleet, while the page is seen.
 * @param {string} generation of the fleet
 * @param {Wish | undefined} wish another one ends the present question
 * @returns {Counted}
 */
export function useRoom(generation, wish) {
  const [state, setState] = useState(NOTHING);
  const key = wish ? JSON.stringify(wish.request) : "";
  useEffect(() => {
    setState(wish ? { ...NOTHING, isLoading: true } : NOTHING);
    return wish ? follow(wish, setState) : undefined;
  }, [key, generation]);
  return state;
}

/** Ask now and after changes; return a function that ends it. @param {Wish} wish @param {(state: Counted) => void} report */
function follow(wish, report) {
  const stop = new AbortController();
  let timer = 0;
  let isStale = true;
  let isBusy = false;
  let room = /** @type {Room | null} */ (null);
  const plan = (/** @type {number} */ after) => {
    if (isStale && !isBusy && !stop.signal.aborted) timer ||= setTimeout(() => void ask(), after);
  };
  const ask = async () => {
    timer = 0;
    if (document.hidden) return;
    [isBusy, isStale] = [true, false];
    const begun = performance.now();
    let error = null;
    try {
      const found = await fetchRoom(wish, stop.signal);
      if (found.generation === data.peek()?.generation) room = found;
      else {
        isStale = true; // The columns of the page are older, or those of another process.
        void load();
      }
    } catch (problem) {
      error = problem instanceof ApiError ? problem : new ApiError(0, String(problem));
      isStale = error.status !== 400 && error.status !== 403;
    }
    if (stop.signal.aborted) return;
    isBusy = false;
    report({ room, error, isLoading: !room && !error });
    plan(Math.max(room || error ? AGAIN_MS : NEWER_MS, SHARE * (performance.now() - begun)));
  };
  const mark = () => {
    isStale = true;
    plan(AGAIN_MS);
  };
  const show = () => document.hidden || plan(FIRST_MS);
  plan(FIRST_MS);
  const end = changes.subscribe(mark);
  addEventListener("visibilitychange", show);
  return () => {
    stop.abort();
    clearTimeout(timer);
    end();
    removeEventListener("visibilitychange", show);
  };
}

/** @param {Wish} wish @param {AbortSignal} signal */
async function fetchRoom(wish, signal) {
  const response = await send("POST", "/capacity/columns", { body: { request: wish.request }, signal });
  return decodeRoom(await response.arrayBuffer());
}
