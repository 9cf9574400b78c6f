/** A line of a chart. */
export interface ChartLine {
  readonly label: string;
  /** One for each time. Null leaves a gap. */
  readonly values: readonly (number | null)[];
  /** It stands for everything that has no line of its own. */
  readonly isRest: boolean;
}

/** What a chart draws. */
export interface ChartContent {
  /** Milliseconds since 1970, ascending. */
  readonly times: readonly number[];
  readonly lines: readonly ChartLine[];
}

/** How a chart looks and reads. */
export interface ChartLook {
  /** The colour of a line, read for every drawing. */
  lineColour(line: number): string;
  /** Colours of texts and of the grid, read for every drawing. */
  textColour(): string;
  gridColour(): string;
  readonly font: string;
  /** Pixels, with the axes. */
  readonly height: number;
  /** Each value is that of its whole time until the next one, such as a count. Otherwise it is a point on a line. */
  readonly isStepped: boolean;
  /** The values are whole numbers, and so are those of the axis. */
  readonly isWhole: boolean;
  /** IANA time zone in which the axis has its round times. Default: the reader's. */
  readonly timeZone: string | undefined;
  writeTime(at: Date): string;
  /** `isShort`: beside an axis. */
  writeValue(value: number | null, isShort: boolean): string;
  /** The time at which the pointer is. Undefined if it is elsewhere. */
  pointed(at: number | undefined): void;
}

/** A drawn chart. */
export interface DrawnChart {
  show(content: ChartContent): void;
  resize(width: number): void;
  /** Draws again in the present colours. */
  redraw(): void;
  close(): void;
}
