/** The samples of a text in Prometheus' format: the labels of each metric, with the values that occur. */
export type Exposition = ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>>;

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

/** Reads texts of `/metrics`. Throws for a line that is neither a comment nor a sample. */
export function readExposition(...texts: readonly string[]): Exposition {
  const metrics = new Map<string, Map<string, Set<string>>>();
  for (const line of texts.join("\n").split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const [, metric, labels = ""] = SAMPLE.exec(line) ?? [];
    if (metric === undefined) throw new Error(`Not a sample: ${line}`);
    const known = metrics.get(metric) ?? new Map<string, Set<string>>();
    metrics.set(metric, known);
    for (const [, name, value] of labels.matchAll(LABEL)) known.set(name!, (known.get(name!) ?? new Set()).add(value!));
  }
  return metrics;
}
