import { globSync, readFileSync } from "node:fs";
import { code, table } from "./table.ts";

const root = new URL("../../../", import.meta.url);

/** Every metric that sources of the service declare with a name and a help text. */
export function metricReference(): string {
  const files = globSync(
    ["adapters/src/**/*.ts", "adapters/*/src/**/*.ts", "core/src/**/*.ts", "plugins/**/src/**/*.ts", "presets/**/src/**/*.ts"],
    {
      cwd: root,
      exclude: (name) => name === "node_modules",
    },
  );
  const found = files.flatMap((file) => metricsOf(readFileSync(new URL(file, root), "utf8")));
  const rows = found
    .toSorted(([one = ""], [other = ""]) => one.localeCompare(other))
    .map(([name = "", help = "", labels = ""]) => [code(name), `${help}.`, labels]);
  return table(["Metric", "Meaning", "Labels"], rows);
}

/** The name, help and labels of declarations such as `name: "portico_x", help: "…"` and `gauge("process_x", "…"`. */
function metricsOf(text: string): string[][] {
  const objects = text.matchAll(/name: "([a-z][a-z0-9_]+)",\s+help(?:: "([^"]+)")?,(?:\s+labelNames: \[([^\]]*)\])?/g);
  const calls = text.matchAll(/\bgauge\("([a-z_]+)", "([^"]+)"/g);
  return [
    ...[...objects].map(([, name = "", help, labels = ""]) => [
      name,
      help ?? helpBefore(text, name),
      [...labels.matchAll(/"(\w+)"/g)].map(([, label = ""]) => code(label)).join(", "),
    ]),
    ...[...calls].map(([, name = "", help = ""]) => [name, help, ""]),
  ];
}

/** The text of the constant `help` that stands last before a declaration. */
function helpBefore(text: string, name: string): string {
  const before = text.slice(0, text.indexOf(`"${name}"`));
  const help = [...before.matchAll(/\bhelp\s*=\s*"([^"]+)"/g)].at(-1)?.[1];
  if (help === undefined) throw new Error(`The metric ${name} has no help text`);
  return help;
}
