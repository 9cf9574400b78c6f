import type { ScheduleAnswer } from "@portico/core/contract";

/** The parameter of the address that hides schedules that do not fail. */
export const ONLY_FAILING = "failing";

/** A schedule of an agent or of a workflow, as the page shows and changes it. */
export interface ShownSchedule extends ScheduleAnswer {
  /** The agent or workflow. */
  readonly owner: string;
  readonly ownerHref: string;
  readonly name: string;
  /** The newest planned time that started nothing, because the workflow's limit refused it. */
  readonly lastRefused?: { readonly plannedAt: string; readonly code: string } | undefined;
  /** The address of the page of a run that it started. */
  hrefOf(runId: string): string;
  /** Starts it now. Returns the address of the run's page. */
  trigger(): Promise<string>;
  setPaused(isPaused: boolean): Promise<unknown>;
}
