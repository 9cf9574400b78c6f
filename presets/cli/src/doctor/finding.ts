/** The result of one check. */
export interface Finding {
  /** `configuration`, `data directory`, `provider main`, `port of proxy`, … */
  readonly about: string;
  readonly isWrong: boolean;
  /** A warning: `doctor` does not fail because of it. */
  readonly isWarning?: true;
  /** Contains no secret. */
  readonly message: string;
  /** How to fix it. */
  readonly fix?: string;
  /** The first names that the message counts. May contain control characters of file names and ids. */
  readonly items?: readonly string[];
}

/** The same finding, with the names that its message counts. */
export function withItems(finding: Finding, items: readonly string[]): Finding {
  return { ...finding, items };
}

export function fine(about: string, message: string): Finding {
  return { about, isWrong: false, message };
}

export function doubtful(about: string, message: string): Finding {
  return { about, isWrong: false, isWarning: true, message };
}

export function wrong(about: string, message: string, fix: string): Finding {
  return { about, isWrong: true, message, fix };
}
