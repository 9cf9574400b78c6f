import { type Completion, type CompletionSource, insertCompletionText, pickedCompletion } from "@codemirror/autocomplete";
import { parseDocument } from "yaml";
import type { CodeLanguage, CompletionSchema } from "./code-editor.ts";
import { expand, isRecord, type Json, schemasAt } from "./schemas-at.ts";
import { placeInJson, placeInYaml, type TextPlace } from "./text-place.ts";

/** Offers the names and values that a JSON Schema allows at the cursor, with their descriptions. */
export function completeFrom(schema: CompletionSchema, language: CodeLanguage): CompletionSource {
  return (context) => {
    const place = language === "yaml" ? placeInYaml(context.state, context.pos) : placeInJson(context.state, context.pos);
    if (!place) return null;
    if (!context.explicit && place.word === "" && place.kind === "name") return null;
    const line = context.state.doc.lineAt(context.pos);
    const around = `${context.state.sliceDoc(0, line.from)}${context.state.sliceDoc(line.to)}`;
    const options = optionsAt(schema, place, valueOf(around), language);
    return options.length === 0 ? null : { from: place.from, options, validFor: /^[\w.$-]*$/ };
  };
}

function optionsAt(root: CompletionSchema, place: TextPlace, value: Json, language: CodeLanguage): Completion[] {
  const { schemas, value: current } = schemasAt(root, place.path, value);
  if (place.kind === "name") return namesOf(root, schemas, isRecord(current) ? Object.keys(current) : [], language);
  return schemas.flatMap((schema) => valuesOf(schema, language)).filter(isFirst);
}

function namesOf(
  root: CompletionSchema,
  schemas: readonly CompletionSchema[],
  present: readonly string[],
  language: CodeLanguage,
) {
  const options = schemas.flatMap(({ properties = {}, required = [] }) =>
    Object.entries(properties).flatMap(([name, property]): Completion[] => {
      if (present.includes(name)) return [];
      const [first = property] = expand(root, property, undefined);
      const info = property.description ?? first.description;
      return [
        {
          label: name,
          apply: language === "json" ? insertJson(`${JSON.stringify(name)}: `) : `${name}: `,
          detail: required.includes(name) ? "required" : "",
          boost: required.includes(name) ? 2 : 0,
          ...(info && { info }),
        },
      ];
    }),
  );
  return options.filter(isFirst);
}

function valuesOf(schema: CompletionSchema, language: CodeLanguage): Completion[] {
  const values = [
    ...(schema.const === undefined ? [] : [schema.const]),
    ...(schema.enum ?? []),
    ...(schema.type === "boolean" ? [true, false] : []),
    ...(schema.examples ?? []),
  ];
  return values
    .filter((value) => typeof value !== "object")
    .map((value) => ({
      label: String(value),
      ...(language === "json" && { apply: insertJson(JSON.stringify(value)) }),
      ...(schema.description && { info: schema.description }),
    }));
}

/** Replaces the quotes around the word, too: the editor closes them by itself. */
function insertJson(text: string): NonNullable<Completion["apply"]> {
  return (view, completion, from, to) => {
    const start = view.state.sliceDoc(from - 1, from) === '"' ? from - 1 : from;
    const end = view.state.sliceDoc(to, to + 1) === '"' ? to + 1 : to;
    view.dispatch({
      ...insertCompletionText(view.state, text, start, end),
      annotations: pickedCompletion.of(completion),
    });
  };
}

const isFirst = (option: Completion, at: number, all: readonly Completion[]) =>
  all.findIndex(({ label }) => label === option.label) === at;

/** The value of a text without the line that is being written. Faults are ignored. */
function valueOf(text: string): Json {
  try {
    return parseDocument(text, { strict: false, uniqueKeys: false, logLevel: "silent" }).toJS({ maxAliasCount: 100 });
  } catch {
    return undefined;
  }
}
