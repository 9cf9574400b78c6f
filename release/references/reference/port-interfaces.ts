import { readdirSync, readFileSync } from "node:fs";
import { code, table } from "./table.ts";

const folder = new URL("../../../core/src/ports/", import.meta.url);

interface Declared {
  readonly type: string;
  readonly about: string;
  /** Members with their doc comments. */
  readonly members: readonly (readonly [member: string, rules: string])[];
}

/** Every port: the interfaces with functions that its file declares, the port's own first, with their doc comments. */
export function portReference(): string {
  const names = readdirSync(folder)
    .filter((file) => file.endsWith(".ts") && file !== "index.ts")
    .map((file) => file.slice(0, -".ts".length));
  return names.map(partOf).join("\n\n");
}

function partOf(name: string): string {
  const source = readFileSync(new URL(`${name}.ts`, folder), "utf8");
  const [, type] = /: (?:Many)?Port<(?:readonly )?(\w+)(?:\[\])?> = define/.exec(source) ?? [];
  const all = interfacesOf(source);
  const own = all.find((each) => each.type === type);
  if (!own) throw new Error(`core/src/ports/${name}.ts declares no port with an interface of its own`);
  const others = all.filter((each) => each !== own && each.members.some(([member]) => member.endsWith("()")));
  const tableOf = ({ members }: Declared) =>
    table(
      ["Member", "Rules"],
      members.map(([member, rules]) => [code(member), rules]),
    );
  return [
    `## ${name}`,
    `${code(own.type)}: ${own.about} [Adapters and suite](../ports/${name}.md)`,
    tableOf(own),
    ...others.flatMap((each) => [`${code(each.type)}: ${each.about}`, tableOf(each)]),
  ].join("\n\n");
}

function interfacesOf(source: string): Declared[] {
  return [...source.matchAll(/\/\*\*((?:(?!\*\/)[^])*)\*\/\nexport interface (\w+).*\{\n((?:(?!\n\}\n)[^])*)\n\}\n/g)].map(
    ([, about = "", type = "", body = ""]) => ({ type, about: textOf(about), members: membersOf(body) }),
  );
}

function membersOf(body: string): (readonly [string, string])[] {
  const found = body.matchAll(/(?:^ {2}\/\*\*((?:(?!\*\/)[^])*)\*\/\n)?^ {2}(?:readonly )?(\w+\??)(?:<.*?>(?=\())?([(:])/gm);
  return [...found].map(([, comment = "", member = "", kind]) => [kind === "(" ? `${member}()` : member, textOf(comment)]);
}

/** A doc comment as one line, without numbers of the specification. */
function textOf(comment: string): string {
  return comment
    .replaceAll(/^\s*\* ?/gm, "")
    .replaceAll(/ \((?:specification|open points)[^)]*\)/g, "")
    .replaceAll(/\{@link (\w+)\}/g, "`$1`")
    .replaceAll(/\s*\n\s*/g, " ")
    .trim();
}
