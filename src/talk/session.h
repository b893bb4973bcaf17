// SPDX-License-Identifier: Apache-2.0
// A conversation with somebody who answers: what was said, what is set, and the commands that
// change either. Knows no terminal: what it shows goes to a ReplyView and to notes.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "talk/answerer.h"
#include "talk/reply_view.h"
#include "talk/slash.h"
namespace hearth {

struct SessionPlaces {
  ReplyView& view;
  // A text of the program's own, of one line or several; no end of line at its end.
  std::function<void(const std::string& text)> note;
  // The same for what goes beside every reply, and is left out where it would be in the way.
  std::function<void(const std::string& text)> figures;
  std::atomic<bool>& interrupted;
};

// Thread: one.
class TalkSession {
 public:
  // `name` is what `answerer` was opened by.
  TalkSession(AnswererSource& source, std::string name, std::unique_ptr<Answerer> answerer,
              TalkSettings settings, SessionPlaces places);

  void SetSystem(const std::string& text);
  // One turn. After an error nothing has been said: the message is taken back.
  Result<TurnEnd> Say(const std::string& text);
  // Whether the chat goes on. What is wrong with a command is a note.
  bool Run(const std::string& command, const std::string& arguments);

  const Conversation& conversation() const { return conversation_; }
  // Which model answers, where, and with how much context: one line.
  std::string Greeting() const;

 private:
  Status Dispatch(const std::string& command, const std::string& arguments);
  Status CheckAnswerer() const;
  Result<TurnEnd> Turn();
  void Sum(const TurnFigures& figures);
  Status RunSystem(const std::string& text);
  Status RunModel(const std::string& name);
  Status RunSet(const std::string& arguments);
  Status RunRetry();
  Status RunUndo();
  Status RunSave(std::string path);
  Status RunLoad(const std::string& path);
  Status RunFile(const std::string& path);
  Status RunThoughts();
  Status RunStats();
  // Where the last message of the user stands; npos when there is none.
  size_t LastUserMessage() const;

  AnswererSource& source_;
  std::unique_ptr<Answerer> answerer_;  // null: another was asked for, and neither could be opened
  std::string given_name_;
  TalkSettings settings_;
  const SessionPlaces places_;
  Conversation conversation_;
  struct Attachment {
    std::string name, text;
  };
  std::vector<Attachment> attachments_;  // for the next message
  std::string own_file_;                 // saved to or loaded from: may be replaced
  int num_turns_ = 0;
  TurnFigures sum_, last_;
};

}  // namespace hearth
