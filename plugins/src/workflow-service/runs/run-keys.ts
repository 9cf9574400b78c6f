/** The keys by which runs are found. */
export interface RunKey {
  readonly workflowId: string;
  readonly bindingId?: string | undefined;
  /** ISO 8601. */
  readonly startedAt: string;
  /** The hash of the run's definition. */
  readonly definition: string;
}

/** How the keys of all runs are ordered. */
export const RUN_LIST: Readonly<Record<string, readonly string[]>> = {
  by_workflow: ["workflowId", "startedAt"],
  by_start: ["startedAt"],
  by_definition: ["definition", "startedAt"],
};
