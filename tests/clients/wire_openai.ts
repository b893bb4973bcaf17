// SPDX-License-Identifier: Apache-2.0
// What hearth serve may send under OpenAI's paths, in the words of the openai package.
import type { ChatCompletion, ChatCompletionChunk } from 'openai/resources/chat/completions';
import type { Completion, CompletionChoice } from 'openai/resources/completions';
import type { CreateEmbeddingResponse } from 'openai/resources/embeddings';
import type { Model } from 'openai/resources/models';
import type {
  Response,
  ResponseItemList,
  ResponseStreamEvent,
} from 'openai/resources/responses/responses';
import type { InputTokenCountResponse } from 'openai/resources/responses/input-tokens';

export interface Wire {
  ChatCompletion: ChatCompletion;
  ChatCompletionChunk: ChatCompletionChunk;
  Completion: Completion;
  // The package has no type of its own for these; until the last one OpenAI says null as well.
  CompletionChunk: Omit<Completion, 'choices' | 'usage'> & {
    usage?: Completion['usage'] | null;
    choices: Array<
      Omit<CompletionChoice, 'finish_reason'> & {
        finish_reason: CompletionChoice['finish_reason'] | null;
      }
    >;
  };
  CreateEmbeddingResponse: CreateEmbeddingResponse;
  InputTokenCountResponse: InputTokenCountResponse;
  Model: Model;
  ModelList: { object: 'list'; data: Array<Model> };
  Response: Response;
  ResponseItemList: ResponseItemList;
  ResponseStreamEvent: ResponseStreamEvent;
  ResponseDeleted: { id: string; object: 'response'; deleted: true };
  Failure: {
    error: { message: string; type: string; param: string | null; code: string | null };
  };
}
