/** Planned times, in milliseconds since 1970. They are a function of the timing alone: all processes agree on them. */
export interface PlannedTimes {
  /** The first `count` planned times after `time`, oldest first. Fewer if there are no more. */
  after(time: number, count: number): readonly number[];
  /** The last `count` planned times at or before `time`, oldest first. */
  upTo(time: number, count: number): readonly number[];
}
