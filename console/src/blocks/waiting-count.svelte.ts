/** The number of decisions that wait for the user. It is in the title of the document and in the navigation. */
class WaitingCount {
  current = $state(0);
  /** There may be more. */
  isPart = $state(false);

  /** `3`, `200+`. */
  get text(): string {
    return `${this.current}${this.isPart ? "+" : ""}`;
  }
}

export const waitingCount = new WaitingCount();
