/** The form to sign in. */
import { useState } from "preact/hooks";
import { h } from "preact";
import { signIn } from "../page/api.js";
import { authentication } from "../page/credentials.js";
import { Icon } from "../parts/icons.js";
import { Problem } from "../parts/elements.js";
import { TextField } from "../parts/fields.js";

export function SignIn() {
  const [token, setToken] = useState("");
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [isBusy, setBusy] = useState(false);
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    signIn(token.trim())
      .catch((problem) =>
        setError(problem.status === 401 ? new Error("The server does not know this token.") : problem),
      )
      .finally(() => setBusy(false));
  };
  return h(
    "main",
    { class: "sign-in" },
    h(
      "form",
      { class: "card stack", onSubmit: submit },
      h("h1", {}, h(Icon, { name: "roost", size: 22 }), " Roost"),
      h(
        "p",
        { class: "second" },
        `Sign in to ${location.host} with a token${authentication === "keystone" ? " of Keystone" : ""}.`,
      ),
      h(TextField, {
        label: "Token",
        type: "password",
        name: "token",
        autocomplete: "current-password",
        required: true,
        value: token,
        onText: setToken,
      }),
      h(Problem, { error }),
      h(
        "button",
        { class: "button primary", type: "submit", disabled: isBusy || !token.trim() },
        isBusy ? "Signing in …" : "Sign in",
      ),
      authentication === "tokens"
        ? h("p", { class: "second" }, "Create a token with ", h("code", {}, "roost token create"), ".")
        : null,
    ),
  );
}
