#include "tuner/campaign/messages.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include "tuner/campaign/message_fields.h"
#include "tuner/campaign/problem_json.h"
#include "tuner/text/base64.h"
#include "tuner/text/command_error.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;

constexpr std::array<std::string_view, std::variant_size_v<Request>> kRequestKinds{"open",        "look_up", "tune",
                                                                                   "consolidate", "compile", "stop"};
constexpr std::array<std::string_view, std::variant_size_v<Answer>> kAnswerKinds{
    "ready", "progress", "looked_up", "tuned", "consolidated", "compiled", "compile_failed", "failed"};

/// Texts are bytes, as names of files are, and JSON takes UTF-8 alone: on the wire each byte is the code point of its
/// number.
void bytes_to_code_points(std::string& text) {
  std::string points;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) points += c;
    else points.append({static_cast<char>(0xc0 | byte >> 6), static_cast<char>(0x80 | (byte & 0x3f))});
  }
  text = std::move(points);
}

void code_points_to_bytes(std::string& text) {
  std::size_t size = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    const bool is_pair = (first & 0xfc) == 0xc0 && i + 1 < text.size();
    text[size++] = is_pair ? static_cast<char>(first << 6 | (text[++i] & 0x3f)) : text[i];
  }
  text.resize(size);
}

void each_text(Json& json, void (*change)(std::string&)) {
  if (json.is_string()) return change(json.get_ref<std::string&>());
  if (json.is_structured())
    for (Json& element : json) each_text(element, change);
}

std::string readable(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// JSON has a type for such a value.
template <class T>
concept Plain = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::same_as<T, std::string> ||
    std::same_as<T, std::map<std::string, int>> || std::same_as<T, decltype(Reason::numbers)>;

/// Writes fields into an object. Candidates are written by the space of the problem before them.
class FieldWriter {
 public:
  explicit FieldWriter(const Problem* problem = nullptr) : problem_(problem) {}

  void operator()(std::string_view name, const auto& value) { object_[std::string(name)] = json_of(value); }
  template <class T>
  void operator()(std::string_view name, const std::optional<T>& value) {
    if (value) (*this)(name, *value);
  }

  Json take() { return std::move(object_); }

 private:
  Json json_of(const Plain auto& value) { return value; }
  Json json_of(const std::filesystem::path& path) { return path.string(); }
  Json json_of(milliseconds duration) { return duration.count(); }
  Json json_of(const std::vector<std::byte>& bytes) { return base64(bytes); }
  Json json_of(const Problem& problem) {
    problem_ = &problem;
    return to_json(problem);
  }
  /// Null for that of an item without a winner.
  Json json_of(const Candidate& candidate) {
    return candidate.policy.size() > 0 ? to_json(candidate, *problem_) : Json(nullptr);
  }
  Json json_of(const HasFields auto& value) {
    FieldWriter fields(problem_);
    each_field(value, fields);
    return fields.take();
  }
  template <class T>
  Json json_of(const std::vector<T>& list) {
    Json json = Json::array();
    for (const T& each : list) json.push_back(json_of(each));
    return json;
  }

  const Problem* problem_;
  Json object_ = Json::object();
};

/// Reads the fields of an object, each by its name; in the end none may be left.
class FieldReader {
 public:
  FieldReader(const Json& object, std::string_view kind, const Problem* problem = nullptr)
      : object_(object), kind_(kind), problem_(problem) {
    if (!object.is_object()) fail("is no object");
  }

  template <class T>
  void operator()(std::string_view name, T& value) {
    const auto found = object_.find(std::string(name));
    if (found == object_.end()) fail(fmt::format("has no '{}'", name));
    read_field(name, *found, value);
  }
  template <class T>
  void operator()(std::string_view name, std::optional<T>& value) {
    const auto found = object_.find(std::string(name));
    if (found != object_.end()) read_field(name, *found, value.emplace());
  }

  void finish() const {
    for (const auto& [name, value] : object_.items())
      if (std::find(read_.begin(), read_.end(), name) == read_.end())
        fail(fmt::format("has an unknown field '{}'", printable(name)));
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw CommandError(ExitCode::failed, fmt::format("the message '{}' between processes {}", kind_, what));
  }

  template <class T>
  void read_field(std::string_view name, const Json& json, T& value) {
    read_.emplace_back(name);
    try {
      read(json, value);
    } catch (const Json::exception&) {
      fail(fmt::format("has a '{}' of another type: {}", name, truncate(printable(readable(json)), 60)));
    }
  }

  template <Plain T>
  void read(const Json& json, T& value) {
    value = json.get<T>();
  }
  void read(const Json& json, std::filesystem::path& path) { path = json.get<std::string>(); }
  void read(const Json& json, milliseconds& duration) { duration = milliseconds(json.get<std::int64_t>()); }
  void read(const Json& json, std::vector<std::byte>& bytes) {
    std::optional<std::vector<std::byte>> decoded = from_base64(json.get_ref<const std::string&>());
    if (!decoded) fail("has code that is no base64");
    bytes = *std::move(decoded);
  }
  void read(const Json& json, Problem& problem) {
    problem = problem_from_json(json);
    problem_ = &problem;
  }
  void read(const Json& json, Candidate& candidate) {
    if (json.is_null()) return;
    if (!problem_) fail("has a candidate before any problem");
    candidate = candidate_from_json(json, *problem_);
  }
  void read(const Json& json, HasFields auto& value) {
    FieldReader fields(json, kind_, problem_);
    each_field(value, fields);
    fields.finish();
  }
  template <class T>
  void read(const Json& json, std::vector<T>& list) {
    const Json::array_t& elements = json.get_ref<const Json::array_t&>();
    list.resize(elements.size());
    for (std::size_t i = 0; i < elements.size(); ++i) {
      if constexpr (std::same_as<T, bool>) {
        list[i] = elements[i].get<bool>();
      } else {
        read(elements[i], list[i]);
      }
    }
  }

  const Json& object_;
  std::string_view kind_;
  const Problem* problem_;
  std::vector<std::string> read_;
};

template <class Message, std::size_t kCount>
Json write_message(const Message& message, const std::array<std::string_view, kCount>& kinds) {
  FieldWriter fields;
  std::visit([&](const auto& each) { each_field(each, fields); }, message);
  Json json = Json::object();
  json[std::string(kinds[message.index()])] = fields.take();
  each_text(json, bytes_to_code_points);
  return json;
}

template <class Message, std::size_t kIndex = 0>
Message read_alternative(std::size_t index, std::string_view kind, const Json& body) {
  if constexpr (kIndex + 1 < std::variant_size_v<Message>)
    if (index != kIndex) return read_alternative<Message, kIndex + 1>(index, kind, body);
  std::variant_alternative_t<kIndex, Message> message;
  FieldReader fields(body, kind);
  each_field(message, fields);
  fields.finish();
  return message;
}

template <class Message, std::size_t kCount>
Message read_message(Json json, const std::array<std::string_view, kCount>& kinds) {
  each_text(json, code_points_to_bytes);
  const auto malformed = [&] {
    return CommandError(
        ExitCode::failed,
        fmt::format("a message between processes is of no known kind: {}", truncate(printable(readable(json)), 60)));
  };
  if (!json.is_object() || json.size() != 1) throw malformed();
  const auto message = json.cbegin();
  const auto kind = std::find(kinds.begin(), kinds.end(), message.key());
  if (kind == kinds.end()) throw malformed();
  return read_alternative<Message>(static_cast<std::size_t>(kind - kinds.begin()), *kind, message.value());
}

}  // namespace

Json to_json(const Request& request) { return write_message(request, kRequestKinds); }
Request request_from_json(const Json& json) { return read_message<Request>(json, kRequestKinds); }
Json to_json(const Answer& answer) { return write_message(answer, kAnswerKinds); }
Answer answer_from_json(const Json& json) { return read_message<Answer>(json, kAnswerKinds); }

}  // namespace hone::tuner
