/** A fault in the text, or a remark about it. Lines and columns are counted from 1. */
export interface CodeDiagnostic {
  readonly line: number;
  readonly column: number;
  /** The end of the fault, exclusive. Default: the end of the word, or of the line. */
  readonly endLine?: number | undefined;
  readonly endColumn?: number | undefined;
  readonly severity: "error" | "warning" | "info";
  readonly message: string;
}

export type CodeLanguage = "json" | "yaml";

/** The parts of a JSON Schema that completion reads. Other keywords are ignored. */
export interface CompletionSchema {
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, CompletionSchema>>;
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly examples?: readonly unknown[];
  readonly properties?: Readonly<Record<string, CompletionSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: CompletionSchema | boolean;
  readonly items?: CompletionSchema | boolean;
  readonly allOf?: readonly CompletionSchema[];
  readonly anyOf?: readonly CompletionSchema[];
  readonly oneOf?: readonly CompletionSchema[];
  readonly if?: CompletionSchema;
  readonly then?: CompletionSchema;
  readonly else?: CompletionSchema;
}

/** What can change while the editor is open. */
export interface EditorSettings {
  readonly language: CodeLanguage;
  /** The accessible name. */
  readonly label: string;
  readonly isReadOnly: boolean;
  /** Its names and values are offered while the user writes, and its descriptions are shown. */
  readonly schema?: CompletionSchema | undefined;
}

export interface OpenEditor {
  readonly text: string;
  /** Replaces the text, if it differs. The cursor and the history stay. */
  show(text: string): void;
  configure(settings: EditorSettings): void;
  diagnose(diagnostics: readonly CodeDiagnostic[]): void;
  /** Puts the cursor there, and the focus into the editor. */
  goTo(line: number, column: number): void;
  close(): void;
}
