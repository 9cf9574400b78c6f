/** What one check found. */
export interface Finding {
  /** `configuration`, `data directory`, `provider main`, `port of proxy`, … */
  readonly about: string;
  readonly isWrong: boolean;
  /** Holds no secret. */
  readonly message: string;
  /** What to do about it. */
  readonly fix?: string;
}

export function fine(about: string, message: string): Finding {
  return { about, isWrong: false, message };
}

export function wrong(about: string, message: string, fix: string): Finding {
  return { about, isWrong: true, message, fix };
}
