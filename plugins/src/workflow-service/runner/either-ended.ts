/** The joined signals of frames by the signal of the work. */
const joined = new WeakMap<AbortSignal, { readonly work: AbortSignal; readonly either: AbortSignal }>();

/**
 * A signal that aborts with the signal of a work or of one of its frames, with the reason of the first. All attempts of a frame share it,
 * because making one costs as much as a short step.
 */
export function eitherEnded(work: AbortSignal, frame: AbortSignal): AbortSignal {
  const known = joined.get(frame);
  if (known?.work === work) return known.either;
  const either = AbortSignal.any([work, frame]);
  joined.set(frame, { work, either });
  return either;
}
