export interface Toast {
  readonly id: number;
  readonly text: string;
  readonly tone: "good" | "bad";
}

/** Long enough to be read. */
const SHOWN_MS = 5_000;

/** Short messages about completed actions. They disappear, so they must not contain anything that is needed later. */
class Toasts {
  shown = $state.raw<readonly Toast[]>([]);
  #next = 0;

  say(text: string, tone: Toast["tone"] = "good"): void {
    const toast = { id: this.#next++, text, tone };
    this.shown = [...this.shown, toast];
    setTimeout(() => this.dismiss(toast.id), SHOWN_MS);
  }

  dismiss(id: number): void {
    this.shown = this.shown.filter((toast) => toast.id !== id);
  }
}

export const toasts = new Toasts();
