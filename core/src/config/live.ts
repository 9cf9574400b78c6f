/** A value that may be replaced while an app is open, such as settings whose secrets are rotated. Made by `createLive`. */
export interface Live<T> {
  readonly current: T;
  /** Take part in each later replacement. Returns the function that ends this. */
  follow(prepare: PrepareChange<T>): () => void;
}

/**
 * The part of one follower in a replacement, in two steps. It checks the next value, and throws or rejects to refuse it for all
 * followers. The returned function applies the value once all followers have accepted it; it must not throw.
 */
export type PrepareChange<T> = (next: T) => (() => void) | Promise<() => void>;

/** A `Live` for the code that owns the value. */
export interface Replaceable<T> extends Live<T> {
  /**
   * Replace the value in all followers, or in none: rejects with the error of the follower that refuses it. Replacements take
   * effect one after the other.
   */
  replace(next: T): Promise<void>;
}

/** A live value, with its first value. */
export function createLive<T>(first: T): Replaceable<T> {
  const followers = new Set<{ readonly prepare: PrepareChange<T> }>();
  let current = first;
  let earlier: Promise<unknown> = Promise.resolve();
  const replaceNow = async (value: T): Promise<void> => {
    const applied = await Promise.all([...followers].map(async ({ prepare }) => prepare(value)));
    current = value;
    for (const apply of applied) apply();
  };
  return {
    get current() {
      return current;
    },
    follow(prepare) {
      const follower = { prepare };
      followers.add(follower);
      return () => void followers.delete(follower);
    },
    replace(value) {
      const done = earlier.then(() => replaceNow(value));
      earlier = done.catch(() => {});
      return done;
    },
  };
}

/** A part of a live value, made by `select` from the whole. */
export function selectLive<T, U>(live: Live<T>, select: (whole: T) => U): Live<U> {
  return {
    get current() {
      return select(live.current);
    },
    follow: (prepare) => live.follow((next) => prepare(select(next))),
  };
}
