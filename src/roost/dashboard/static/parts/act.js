/** A dialog for one act: its fields, its button, and the error of the server. */
import { useMemo, useState } from "preact/hooks";
import { h } from "preact";
import { capital } from "../page/format.js";
import { Dialog, Problem } from "./elements.js";

/** An error without the path of the field in the body: the fields of a dialog have other names. @param {string} text */
const withoutPath = (text) => capital(text.replace(/^\$[\w.[\]]*: /, ""));

/** A key that makes a repeated request harmless. */
const newKey = () => crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;

/**
 * A dialog that acts once; a repeated try has the same key, so the server acts once, too.
 * @param {{title: string, verb: string, isDanger?: boolean, isReady?: boolean, act: (headers: Record<string, string>) => Promise<unknown>, onClose: () => void, onDone: (answer: any) => void, children?: any}} props
 */
export function ActDialog({ title, verb, isDanger = false, isReady = true, act, onClose, onDone, children }) {
  const key = useMemo(newKey, []);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    act({ "idempotency-key": key }).then(
      (answer) => {
        onDone(answer);
        onClose();
      },
      (problem) => {
        setError(new Error(withoutPath(problem.message), { cause: problem }));
        setBusy(false);
      },
    );
  };
  return h(
    Dialog,
    { title, onClose },
    h(
      "form",
      { onSubmit: submit },
      children,
      h(Problem, { error }),
      h(
        "div",
        { class: "dialog-acts" },
        h("button", { class: "button", type: "button", onClick: onClose }, "Cancel"),
        h(
          "button",
          { class: `button ${isDanger ? "danger" : "primary"}`, type: "submit", disabled: isBusy || !isReady },
          isBusy ? `${verb} …` : verb,
        ),
      ),
    ),
  );
}
