/** A turn as its process counts it. */
export interface NumberedTurn {
  readonly clientRequestId: string;
  /** Names the process in which it began. */
  readonly processId: string;
  /** Its number among the turns that began in that process. */
  readonly number: number;
}

/** A short name of a process, which travels with every event: the end of its `serverInstanceId`, letters and digits. */
export function processIdOf(serverInstanceId: string): string {
  return serverInstanceId.replaceAll("-", "").slice(-8);
}
