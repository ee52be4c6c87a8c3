/* Numbers that threads hand to each other. */
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>

/* A queue that holds so many numbers. */
class Queue
{
  public:
    explicit Queue(std::size_t room) : room_(room) {}

    void put(int number)
    {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return numbers_.size() < room_; });
        numbers_.push_back(number);
        changed_.notify_all();
    }

    int take()
    {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return !numbers_.empty(); });
        const int number = numbers_.front();
        numbers_.pop_front();
        changed_.notify_all();
        return number;
    }

  private:
    std::size_t room_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<int> numbers_;
};
