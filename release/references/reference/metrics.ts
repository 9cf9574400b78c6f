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
    .map(([name = "", help = "", labels = ""]) => [code(name), `${help.replace(/\.$/, "")}.`, labels]);
  return table(["Metric", "Meaning", "Labels"], rows);
}

/** The name, help and labels of declarations such as `name: "portico_x", help: "…"` and `gauge("process_x", "…"`. */
function metricsOf(text: string): string[][] {
  const objects = text.matchAll(/name: "([a-z][a-z0-9_]+)",\s+help(?:: "([^"]+)")?,(?:\s+labelNames: \[([^\]]*)\])?/g);
  const calls = text.matchAll(/\bgauge\("([a-z_]+)", "([^"]+)"/g);
  return [
    ...[...objects].map(({ 0: declaration, 1: name = "", 2: help, 3: labels, index }) => {
      const own =
        labels === undefined
          ? gaugeLabels(text, index, declaration.length)
          : [...labels.matchAll(/"(\w+)"/g)].map(([, label = ""]) => label);
      return [name, help ?? helpBefore(text, name), own.map(code).join(", ")];
    }),
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

/** The labels that the function `read` of a gauge gives, which follows the declaration, or is a constant before it, or calls one. */
function gaugeLabels(text: string, index: number, length: number): string[] {
  const after = text.slice(index + length).split(/\bname: "/)[0] ?? "";
  const [, maker] = /\bread: \(\) => (\w+)\(/.exec(after) ?? [];
  const madeBy = maker === undefined ? -1 : text.indexOf(`const ${maker} =`);
  const isShort = /^\s*(?:isCount: true,\s*)?read\s*[,}]/.test(after);
  const read = isShort
    ? text.slice(text.lastIndexOf("const read", index), index)
    : madeBy < 0
      ? after
      : text.slice(madeBy, index);
  const [, labels = ""] = /labels: \{ ([^}]*) \}/.exec(read) ?? [];
  return labels.split(",").flatMap((each) => /\w+/.exec(each)?.[0] ?? []);
}
