/** The buttons of drains under way: pause, resume, stop. */
import { useState } from "preact/hooks";
import { h } from "preact";
import { ApiError, call, may } from "../page/api.js";
import { counted } from "../page/format.js";
import { Problem } from "../parts/elements.js";
import { ActDialog } from "../parts/act.js";

/** Act on operations; one that has ended meanwhile is no error. @param {any[]} operations @param {string} method @param {string} [act] */
const actOn = (operations, method, act = "") =>
  Promise.all(
    operations.map(({ uuid }) =>
      call(method, `/operations/${uuid}${act && `/${act}`}`).catch((error) => {
        if (!(error instanceof ApiError) || error.status !== 409) throw error;
      }),
    ),
  );

/** Whether a drain can be paused or stopped. @param {any} operation */
const isUnderWay = (operation) => operation.drain && operation.outcome === "open" && !operation.is_cancelled;

/** Buttons for one drain, or for several at once. @param {{operations: any[], onChange: () => void}} props */
export function DrainButtons({ operations, onChange }) {
  const [isStopping, setStopping] = useState(false);
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const drains = operations.filter(isUnderWay);
  const [first] = drains;
  if (!first) return null;
  const isSingle = operations.length === 1;
  const name = (/** @type {string} */ verb) => (isSingle ? verb : `${verb} all`);
  const press = (/** @type {string} */ act, /** @type {any[]} */ chosen) => {
    setError(null);
    actOn(chosen, "POST", act).catch(setError).finally(onChange);
  };
  const button = (/** @type {string} */ act, /** @type {string} */ verb, /** @type {any[]} */ chosen) =>
    chosen.length && may(`operations:${act}`)
      ? h("button", { key: act, class: "button", type: "button", onClick: () => press(act, chosen) }, name(verb))
      : null;
  return h(
    "div",
    { class: "acts" },
    button(
      "pause",
      "Pause",
      drains.filter((each) => !each.drain.is_paused),
    ),
    button(
      "resume",
      "Resume",
      drains.filter((each) => each.drain.is_paused),
    ),
    may("operations:delete")
      ? h("button", { class: "button danger", type: "button", onClick: () => setStopping(true) }, `${name("Stop")} …`)
      : null,
    h(Problem, { error }),
    isStopping
      ? h(
          ActDialog,
          {
            title: isSingle ? `Stop the drain of ${first.drain.host}` : `Stop ${counted(drains.length, "drain")}`,
            verb: isSingle ? "Stop the drain" : "Stop the drains",
            isDanger: true,
            act: () => actOn(drains, "DELETE"),
            onClose: () => setStopping(false),
            onDone: onChange,
          },
          h("p", {}, "No further instances move. Moves in progress complete, and the hosts stay disabled."),
        )
      : null,
  );
}
