import { routeTo } from "./route.svelte.ts";

const KEPT = "portico.console.notify";

/** Notifications of the browser about decisions that wait. They contain a number and no contents. Only a button switches them on. */
class Notify {
  #isOn = $state(isAllowed() && localStorage.getItem(KEPT) === "on");

  get isOn(): boolean {
    return this.#isOn;
  }

  /** Whether the browser has notifications for this page, and the user has not forbidden them. */
  get isPossible(): boolean {
    return "Notification" in globalThis && Notification.permission !== "denied";
  }

  /** Asks the browser, which asks the user. Returns whether notifications are on. */
  async switchOn(): Promise<boolean> {
    this.#isOn = (await Notification.requestPermission()) === "granted";
    if (this.#isOn) localStorage.setItem(KEPT, "on");
    return this.#isOn;
  }

  switchOff(): void {
    this.#isOn = false;
    localStorage.removeItem(KEPT);
  }

  /** More decisions wait than before. A newer notification replaces the older one. */
  tell(count: number): void {
    if (!this.#isOn || !isAllowed()) return;
    const body = count === 1 ? "1 decision waits for you" : `${count} decisions wait for you`;
    const shown = new Notification("Portico", { body, tag: "portico-waiting" });
    shown.addEventListener("click", () => {
      focus();
      location.hash = routeTo("approvals");
      shown.close();
    });
  }
}

function isAllowed(): boolean {
  return "Notification" in globalThis && Notification.permission === "granted";
}

export const notify = new Notify();
