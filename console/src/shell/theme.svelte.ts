/** `system` follows the preference of the system, also when it changes. */
export type Theme = "system" | "light" | "dark";

const KEPT = "portico.console.theme";

class ThemeChoice {
  #current = $state<Theme>(read());

  constructor() {
    this.#apply();
  }

  get current(): Theme {
    return this.#current;
  }

  set current(theme: Theme) {
    this.#current = theme;
    if (theme === "system") localStorage.removeItem(KEPT);
    else localStorage.setItem(KEPT, theme);
    this.#apply();
  }

  #apply(): void {
    if (this.#current === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = this.#current;
  }
}

function read(): Theme {
  const kept = localStorage.getItem(KEPT);
  return kept === "light" || kept === "dark" ? kept : "system";
}

export const theme = new ThemeChoice();
