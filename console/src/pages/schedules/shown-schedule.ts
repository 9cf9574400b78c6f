/** A schedule of an agent or of a workflow, as the page shows and changes it. */
export interface ShownSchedule {
  /** The agent or workflow. */
  readonly owner: string;
  readonly ownerHref: string;
  readonly name: string;
  readonly cron?: string | undefined;
  readonly timeZone?: string | undefined;
  readonly everyMs?: number | undefined;
  readonly paused: boolean;
  /** ISO 8601. */
  readonly next: readonly string[];
  readonly last?: string | undefined;
  /** The number of planned times that wait for the end of the start before them. */
  readonly waiting?: number | undefined;
  /** The newest planned time that started nothing, because the workflow's limit refused it. */
  readonly lastRefused?: { readonly plannedAt: string; readonly code: string } | undefined;
  readonly fault?: string | undefined;
  /** Starts it now. Returns the address of the run's page. */
  trigger(): Promise<string>;
  setPaused(isPaused: boolean): Promise<unknown>;
}
