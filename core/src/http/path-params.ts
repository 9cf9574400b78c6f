export type RawParams = Readonly<Record<string, string>> | undefined;

export interface PathParams {
  readonly params: Readonly<Record<string, string>>;
  /** An escape cannot be decoded. All parameters are then left undecoded. */
  readonly isMalformed: boolean;
}

/**
 * The parameters of a path, decoded once. Parameters that cannot be decoded stay unchanged, so that the credential is checked and
 * refused first.
 */
export function decodeParams(raw: RawParams): PathParams {
  if (raw === undefined) return NONE;
  const entries = Object.entries(raw);
  if (entries.length === 0) return NONE;
  try {
    return {
      params: Object.fromEntries(entries.map(([name, value]) => [name, decodeURIComponent(value)])),
      isMalformed: false,
    };
  } catch {
    return { params: { ...raw }, isMalformed: true };
  }
}

const NONE: PathParams = { params: Object.freeze({}), isMalformed: false };
