/** The buttons of a drain under way: pause, resume, stop. */
import { useState } from "preact/hooks";
import { h } from "preact";
import { call, may } from "../page/api.js";
import { Problem } from "../parts/elements.js";
import { ActDialog } from "../parts/act.js";

/** @param {{operation: any, onChange: () => void}} props */
export function DrainButtons({ operation, onChange }) {
  const [isStopping, setStopping] = useState(false);
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const { drain, uuid } = operation;
  if (!drain || operation.outcome !== "open" || operation.is_cancelled) return null;
  const act = drain.is_paused ? "resume" : "pause";
  const press = () => {
    setError(null);
    call("POST", `/operations/${uuid}/${act}`).then(onChange, setError);
  };
  return h(
    "div",
    { class: "acts" },
    may(`operations:${act}`)
      ? h("button", { class: "button", type: "button", onClick: press }, drain.is_paused ? "Resume" : "Pause")
      : null,
    may("operations:delete")
      ? h("button", { class: "button danger", type: "button", onClick: () => setStopping(true) }, "Stop …")
      : null,
    h(Problem, { error }),
    isStopping
      ? h(
          ActDialog,
          {
            title: `Stop the drain of ${drain.host}`,
            verb: "Stop the drain",
            isDanger: true,
            act: () => call("DELETE", `/operations/${uuid}`),
            onClose: () => setStopping(false),
            onDone: onChange,
          },
          h("p", {}, "No further instances move. Moves in progress complete, and the host stays disabled."),
        )
      : null,
  );
}
