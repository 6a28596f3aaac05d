/** The colour scheme of the page. */
import { useEffect, useState } from "preact/hooks";

/** Whether the page is dark now. */
export function useIsDark() {
  const media = matchMedia("(prefers-color-scheme: dark)");
  const [isDark, setDark] = useState(media.matches);
  useEffect(() => {
    const change = () => setDark(media.matches);
    media.addEventListener("change", change);
    return () => media.removeEventListener("change", change);
  }, []);
  return isDark;
}
