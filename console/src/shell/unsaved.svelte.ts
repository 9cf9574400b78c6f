/** Edits of forms that would be lost if the user left their place. */
class Unsaved {
  readonly #forms = new Set<() => boolean>();
  readonly #texts = new Set<() => boolean>();
  /** The address that the user wants to go to, until the user has decided. */
  asked = $state<string>();
  #allowed: string | undefined;
  /** The number of the shown entry of the browser's history, so that a refused step can be taken back in its direction. */
  #entry = numberOf(history.state) ?? 0;
  #isReturning = false;

  constructor() {
    history.replaceState({ entry: this.#entry }, "");
    // First of all listeners: the others hear only of places that are shown.
    addEventListener("hashchange", (event) => this.#moved(event), { capture: true });
    addEventListener("beforeunload", (event) => {
      if ([...this.#forms, ...this.#texts].some((isDirty) => isDirty())) event.preventDefault();
    });
  }

  /** `isKept`: other places of the console keep the edits, so only leaving the page loses them. */
  add(isDirty: () => boolean, isKept: boolean): () => void {
    const all = isKept ? this.#texts : this.#forms;
    all.add(isDirty);
    return () => all.delete(isDirty);
  }

  /** Goes to the asked address, without the edits. */
  leave(): void {
    this.#allowed = this.asked;
    this.asked = undefined;
    if (this.#allowed !== undefined) location.hash = this.#allowed;
  }

  #moved(event: HashChangeEvent): void {
    if (this.#isReturning) {
      this.#isReturning = false;
      event.stopImmediatePropagation();
      return;
    }
    // The page itself replaced the address of the entry.
    if (event.oldURL === "") return history.replaceState({ entry: this.#entry }, "");
    const [from, to] = [new URL(event.oldURL).hash, new URL(event.newURL).hash];
    const entry = numberOf(history.state);
    const isAllowed = to === this.#allowed;
    this.#allowed = undefined;
    // The address that was loaded first may have no fragment.
    const isElsewhere = (to === "" || to.startsWith("#/")) && placeOf(from) !== placeOf(to);
    if (!isAllowed && isElsewhere && [...this.#forms].some((isDirty) => isDirty())) {
      event.stopImmediatePropagation();
      this.#isReturning = true;
      this.asked = to;
      // A link makes an entry without a number behind the shown one.
      history.go(entry === undefined ? -1 : this.#entry - entry);
      return;
    }
    this.#entry = entry ?? this.#entry + 1;
    if (entry === undefined) history.replaceState({ entry: this.#entry }, "");
  }
}

function numberOf(state: unknown): number | undefined {
  return (state as { readonly entry?: number } | null)?.entry;
}

/** The address without filters, which keep what is shown. */
function placeOf(hash: string): string {
  return hash.split("?", 1)[0]!;
}

export const unsaved = new Unsaved();

/**
 * Before the user leaves, the console asks whether the edits of this component shall be lost. Must be called during component
 * initialization. `isKept`: other places of the console keep them.
 */
export function askBeforeLeaving(isDirty: () => boolean, { isKept = false }: { readonly isKept?: boolean } = {}): void {
  $effect(() => unsaved.add(isDirty, isKept));
}
