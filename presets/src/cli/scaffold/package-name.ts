import { PRESET_NAMES } from "../preset-table.ts";
import { platformSchema } from "../../settings/platform.ts";
import { CommandFailed, EXIT } from "../exit-codes.ts";

/** A name in every spelling that templates have for it. */
export interface PackageName {
  /** `tea-house`: files, packages, surfaces. */
  readonly kebab: string;
  /** `teaHouse`: values and settings. */
  readonly camel: string;
  /** `TeaHouse`: types. */
  readonly pascal: string;
  /** `TEA_HOUSE`: environment variables. */
  readonly constant: string;
}

const NAME = /^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/;
const LONGEST = 50;

/** Throws CommandFailed (64) for what can be no name, and for the platform's own words, which would be told apart from nothing. */
export function packageName(kebab: string): PackageName {
  if (!NAME.test(kebab) || kebab.length > LONGEST) {
    throw new CommandFailed(
      `${JSON.stringify(kebab)} is no name: it takes small letters, digits and single hyphens, begins with a letter, and has at most ${LONGEST} characters`,
      EXIT.usage,
    );
  }
  const words = kebab.split("-");
  const pascal = words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join("");
  const camel = pascal[0]!.toLowerCase() + pascal.slice(1);
  if (Object.hasOwn(platformSchema.entries, camel) || PRESET_NAMES.includes(kebab))
    throw new CommandFailed(`"${kebab}" is a word of the platform's own: choose another name`, EXIT.usage);
  return { kebab, camel, pascal, constant: words.join("_").toUpperCase() };
}
